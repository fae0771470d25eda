/** The settings of one TLS client. */
import { ConfigError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Resolver } from "#core/resolver.ts";
import type { KeyPair, TlsClientOptions, TlsVersion } from "#core/tls.ts";
import type { Trust } from "#core/trust.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { readReality } from "#transport/reality/options.ts";
import { readEch } from "#transport/tls13/ech/source.ts";
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
  /** For the HTTPS records of `ech-opts`; absent: they cannot be asked for. */
  readonly resolver?: Resolver | undefined;
}

/** From the node's keys to options; reads the client certificate. Throws `ConfigError`. */
export async function readTlsClient(
  fields: TlsClientFields,
  context: TlsClientContext,
): Promise<TlsClientOptions> {
  const where = `proxy ${context.node}`;
  const { trust = DEFAULT_TRUST, minVersion = "TLSv1.2", carriesHttp2 = false } = context;
  const serverName = context.serverName || context.server;
  const reality = readReality(fields["reality-opts"]);
  const ech = readEch(fields["ech-opts"], { where, serverName, resolver: context.resolver });
  if (reality !== null && ech !== null)
    throw new ConfigError(`${where}: ech-opts and reality-opts exclude each other`);
  return {
    where,
    serverName,
    nameCertVerify: fields["name-cert-verify"] || null,
    alpn: fields.alpn ?? context.defaultAlpn ?? [],
    skipCertVerify: fields["skip-cert-verify"],
    fingerprint: fields.fingerprint ?? null,
    keyPair: await readKeyPair(fields, where, context.files),
    trust,
    clientFingerprint: fields["client-fingerprint"] ?? "",
    reality,
    ech,
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
