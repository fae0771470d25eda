/** The dialling side of TLS by `node:tls`, through any stream. */
import type { Duplex } from "node:stream";
import { checkServerIdentity, connect } from "node:tls";
import type { ConnectionOptions, PeerCertificate, TLSSocket } from "node:tls";
import { AuthError } from "#core/errors.ts";
import { sniOf, type TlsClientOptions, verifyNameOf } from "./client-options.ts";
import { finishOpening, refuseIfAborted } from "./client-handshake.ts";
import { checkPin } from "./pin.ts";
import { tuned } from "./tuning.ts";

/** More certificates than a sane chain has; a longer one is not walked. */
const MAX_CHAIN = 10;

/**
 * Speaks TLS through a stream and owns it from here. The server is verified before this settles. Failures are
 * `DialError` (an `AuthError` as its cause where the certificate is refused); the stream is destroyed then.
 */
export async function openTlsClient(
  stream: Duplex,
  options: TlsClientOptions,
  signal: AbortSignal,
): Promise<TLSSocket> {
  refuseIfAborted(stream, options.serverName, signal);
  const socket = connect(connectionOptions(stream, options));
  stream.on("error", (error) => socket.destroy(error));
  const opening = { stream: socket, below: stream, event: "secureConnect" } as const;
  await finishOpening({ ...opening, refusal: () => refusal(socket, options) }, options.serverName, signal);
  return socket;
}

function connectionOptions(stream: Duplex, options: TlsClientOptions): ConnectionOptions {
  const { alpn, fingerprint, skipCertVerify = false } = options;
  return {
    socket: stream,
    servername: sniOf(options),
    ...(alpn === undefined || alpn.length === 0 ? {} : { ALPNProtocols: [...alpn] }),
    rejectUnauthorized: fingerprint === undefined && !skipCertVerify,
    checkServerIdentity: (_host: string, certificate: PeerCertificate) =>
      checkServerIdentity(verifyNameOf(options), certificate),
    ...(options.secureContext === undefined
      ? tuned(options.minVersion)
      : { secureContext: options.secureContext }),
  };
}

function refusal(socket: TLSSocket, options: TlsClientOptions): Error | null {
  if (options.fingerprint === undefined) return null;
  const reason = checkPin(chainOf(socket), options.fingerprint, verifyNameOf(options));
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
