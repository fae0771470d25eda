/** The settings of one TLS client. */
import { ConfigError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { KeyPair, TlsClientOptions, TlsVersion } from "#core/tls.ts";
import type { Trust } from "#core/trust.ts";
import { parseIp } from "#net/address/ip.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { readReality } from "#transport/reality/options.ts";
import type { TlsClientFields } from "./fields.ts";

export interface TlsClientContext {
  /** Named in errors and warnings. */
  readonly node: string;
  /** The server's host: the name to ask for where the node has none of its own. */
  readonly server: string;
  /** The node's `sni` or `servername`. */
  readonly serverName?: string | undefined;
  /** Where the node has no list of its own. */
  readonly defaultAlpn?: readonly string[];
  readonly minVersion?: TlsVersion;
  /** As of `TlsClientOptions`; absent: it does not. */
  readonly carriesHttp2?: boolean;
  readonly files: SafeFiles;
  readonly trust?: Trust | undefined;
}

/** From the node's keys to options; reads the client certificate. Throws `ConfigError`. */
export async function readTlsClient(
  fields: TlsClientFields,
  context: TlsClientContext,
): Promise<TlsClientOptions> {
  const where = `proxy ${context.node}`;
  if (fields["ech-opts"]?.enable === true)
    throw new ConfigError(
      `${where}: ech-opts: Encrypted ClientHello is not available in this runtime; remove ech-opts, it is never silently left out`,
    );
  const { trust = DEFAULT_TRUST, minVersion = "TLSv1.2", carriesHttp2 = false } = context;
  return {
    where,
    serverName: context.serverName || context.server,
    nameCertVerify: fields["name-cert-verify"] || null,
    alpn: fields.alpn ?? context.defaultAlpn ?? [],
    skipCertVerify: fields["skip-cert-verify"],
    fingerprint: fields.fingerprint ?? null,
    keyPair: await readKeyPair(fields, where, context.files),
    trust,
    clientFingerprint: fields["client-fingerprint"] ?? "",
    reality: readReality(fields["reality-opts"]),
    minVersion,
    carriesHttp2,
  };
}

async function readKeyPair(
  { certificate, "private-key": key }: TlsClientFields,
  where: string,
  files: SafeFiles,
): Promise<KeyPair | null> {
  if ((certificate ?? "") === "" && (key ?? "") === "") return null;
  if (!certificate || !key)
    throw new ConfigError(`${where}: a client certificate needs both certificate and private-key`);
  return { certificate: await files.readPem(certificate), privateKey: await files.readPem(key) };
}

/** What goes into SNI; empty: nothing, since an address must not. */
export function sniOf({ serverName }: Pick<TlsClientOptions, "serverName">): string {
  return parseIp(serverName) === null ? serverName : "";
}

/** What the certificate must be valid for. */
export function verifyNameOf({
  serverName,
  nameCertVerify,
}: Pick<TlsClientOptions, "serverName"> & Partial<Pick<TlsClientOptions, "nameCertVerify">>): string {
  return nameCertVerify ?? serverName;
}
