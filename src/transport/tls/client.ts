/** The configuration of one TLS client, and the choice of its implementation: the runtime's libssl, or `node:tls`. */
import type { Duplex } from "node:stream";
import type { SecureContext } from "node:tls";
import { ConfigError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import type { Trust } from "#core/trust.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { nativeTls } from "#platform/tls.ts";
import type { TlsClientFields } from "./fields.ts";
import { canGoNative } from "./native-server.ts";
import type { TlsClientOptions } from "./client-options.ts";
import { NativeClient } from "./native-client.ts";
import type { KeyPair } from "./native-contexts.ts";
import { openTlsClient } from "./node-client.ts";
import { openRecordPump, type Bypass } from "./record-pump.ts";
import { tuned, type MinVersion } from "./tuning.ts";

export interface TlsClientContext {
  /** Named in errors and warnings. */
  readonly node: string;
  /** The server's host: the name to ask for where the node has none of its own. */
  readonly server: string;
  /** The node's `sni` or `servername`. */
  readonly serverName?: string | undefined;
  /** Where the node has no list of its own. */
  readonly defaultAlpn?: readonly string[];
  readonly minVersion?: MinVersion;
  /** By `node:tls` alone: absent where what can, may go past its streams. */
  readonly portable?: boolean | undefined;
  readonly files: SafeFiles;
  readonly log: Log;
  readonly trust?: Trust | undefined;
}

/** From the node's keys to options; reads the client certificate. Throws `ConfigError`. */
export async function readTlsClient(
  fields: TlsClientFields,
  context: TlsClientContext,
): Promise<TlsClientOptions> {
  const { node, log } = context;
  if (fields["ech-opts"]?.enable === true)
    throw new ConfigError(
      `proxy ${node}: ech-opts: Encrypted ClientHello is not available in this runtime; remove ech-opts, it is never silently left out`,
    );
  const { trust = DEFAULT_TRUST, minVersion = "TLSv1.2" } = context;
  const keyPair = await readKeyPair(fields, context);
  const alpn = fields.alpn ?? context.defaultAlpn;
  const options = {
    serverName: context.serverName || context.server,
    ...(alpn === undefined ? {} : { alpn }),
    skipCertVerify: fields["skip-cert-verify"],
    ...(fields.fingerprint === undefined ? {} : { fingerprint: fields.fingerprint }),
    ...(fields["name-cert-verify"] ? { nameCertVerify: fields["name-cert-verify"] } : {}),
    minVersion,
    secureContext: secureContext(trust, minVersion, keyPair, node),
  };
  const native = context.portable === true ? null : nativeTls();
  if (native === null) return options;
  return { ...options, native: new NativeClient(native, options, { trust, minVersion, keyPair }, log) };
}

async function readKeyPair(
  { certificate, "private-key": key }: TlsClientFields,
  { node, files }: TlsClientContext,
): Promise<KeyPair | null> {
  if ((certificate ?? "") === "" && (key ?? "") === "") return null;
  if (!certificate || !key)
    throw new ConfigError(`proxy ${node}: a client certificate needs both certificate and private-key`);
  return { certificate: await files.readPem(certificate), privateKey: await files.readPem(key) };
}

function secureContext(
  trust: Trust,
  minVersion: MinVersion,
  keyPair: KeyPair | null,
  node: string,
): SecureContext {
  if (keyPair === null) return trust.context(tuned(minVersion));
  try {
    return trust.context({ ...tuned(minVersion), cert: keyPair.certificate, key: keyPair.privateKey });
  } catch (cause) {
    throw new ConfigError(`proxy ${node}: certificate and private-key do not fit together`, { cause });
  }
}

export interface TlsOpened {
  readonly stream: Duplex;
  /** What both sides agreed on; null: nothing. */
  readonly alpn: string | null;
  /** The way round TLS; null where it was not asked for or cannot be had. */
  readonly bypass: Bypass | null;
}

export interface TlsOpening {
  readonly signal: AbortSignal;
  /** The protocol inside may leave TLS behind. */
  readonly bypassable?: boolean;
}

/** As `openTlsClient`, by the library itself where it can be: then the stream is gone, and its socket lives on in another. */
export async function openTls(
  stream: Duplex,
  options: TlsClientOptions,
  { signal, bypassable = false }: TlsOpening,
): Promise<TlsOpened> {
  const { native } = options;
  if (native?.isReady() === true && canGoNative(stream)) {
    const opened = await native.open(stream, { signal, exact: bypassable });
    return { ...opened, bypass: bypassable ? opened.stream : null };
  }
  const pump = bypassable ? openRecordPump(stream) : null;
  const secured = await openTlsClient(pump?.wire ?? stream, options, signal);
  return { stream: secured, alpn: secured.alpnProtocol || null, bypass: pump };
}
