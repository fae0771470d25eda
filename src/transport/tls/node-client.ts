/** The dialling side of TLS by `node:tls`, through any stream. */
import type { Duplex } from "node:stream";
import { checkServerIdentity, connect } from "node:tls";
import type { ConnectionOptions, PeerCertificate, SecureContext, TLSSocket } from "node:tls";
import { AuthError, ConfigError } from "#core/errors.ts";
import type { TlsClient, TlsClientOptions } from "#core/tls.ts";
import { sniOf, verifyNameOf } from "./client-names.ts";
import { finishOpening, refuseIfAborted } from "./client-handshake.ts";
import { checkPin } from "./pin.ts";
import { openRecordPump } from "./record-pump.ts";
import { tuned } from "./tuning.ts";

/** More certificates than a sane chain has; a longer one is not walked. */
const MAX_CHAIN = 10;

/** What one handshake needs. Absent: nothing is offered or pinned, and the chain is checked. */
export interface NodeClientOptions extends Partial<
  Pick<TlsClientOptions, "alpn" | "skipCertVerify" | "fingerprint" | "nameCertVerify" | "minVersion">
> {
  readonly serverName: string;
  /** Holds trust and the client certificate; absent: the default trust. */
  readonly secureContext?: SecureContext;
}

/** Throws `ConfigError` where the client's certificate and key do not fit together. */
export function makeNodeClient(options: TlsClientOptions): TlsClient {
  const ready = { ...options, secureContext: secureContext(options) };
  return {
    async open(stream, { signal, bypassable = false }) {
      const pump = bypassable ? openRecordPump(stream) : null;
      const secured = await openTlsClient(pump?.wire ?? stream, ready, signal);
      const isOlder = secured.getProtocol() !== "TLSv1.3";
      return { stream: secured, alpn: secured.alpnProtocol || null, bypass: pump, isOlder };
    },
  };
}

function secureContext({ trust, minVersion, keyPair, where }: TlsClientOptions): SecureContext {
  if (keyPair === null) return trust.context(tuned(minVersion));
  try {
    return trust.context({ ...tuned(minVersion), cert: keyPair.certificate, key: keyPair.privateKey });
  } catch (cause) {
    throw new ConfigError(`${where}: certificate and private-key do not fit together`, { cause });
  }
}

/**
 * Speaks TLS through a stream and owns it from here. The server is verified before this settles. Failures are
 * `DialError` (an `AuthError` as its cause where the certificate is refused); the stream is destroyed then.
 */
export async function openTlsClient(
  stream: Duplex,
  options: NodeClientOptions,
  signal: AbortSignal,
): Promise<TLSSocket> {
  refuseIfAborted(stream, options.serverName, signal);
  const socket = connect(connectionOptions(stream, options));
  stream.on("error", (error) => socket.destroy(error));
  const opening = { stream: socket, below: stream, event: "secureConnect" } as const;
  await finishOpening({ ...opening, refusal: () => refusal(socket, options) }, options.serverName, signal);
  return socket;
}

function connectionOptions(stream: Duplex, options: NodeClientOptions): ConnectionOptions {
  const { alpn = [], fingerprint = null, skipCertVerify = false } = options;
  return {
    socket: stream,
    servername: sniOf(options),
    ...(alpn.length === 0 ? {} : { ALPNProtocols: [...alpn] }),
    rejectUnauthorized: fingerprint === null && !skipCertVerify,
    checkServerIdentity: (_host: string, certificate: PeerCertificate) =>
      checkServerIdentity(verifyNameOf(options), certificate),
    ...(options.secureContext === undefined
      ? tuned(options.minVersion)
      : { secureContext: options.secureContext }),
  };
}

function refusal(socket: TLSSocket, options: NodeClientOptions): Error | null {
  const { fingerprint = null } = options;
  if (fingerprint === null) return null;
  const reason = checkPin(chainOf(socket), fingerprint, verifyNameOf(options));
  return reason === null ? null : new AuthError(reason);
}

/** DER, the server's own first. */
function chainOf(socket: TLSSocket): Buffer[] {
  const chain: Buffer[] = [];
  let at = socket.getPeerCertificate(true);
  while (at?.raw !== undefined && chain.length < MAX_CHAIN) {
    chain.push(at.raw);
    if (at.issuerCertificate === undefined || at.issuerCertificate === at) break;
    at = at.issuerCertificate;
  }
  return chain;
}
