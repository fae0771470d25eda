/** The accepting side of TLS by the runtime's own libssl, on the descriptor of a kernel socket. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import { descriptorOf, isPlainSocket } from "#core/handover.ts";
import type { OffloadedTls } from "#core/accepted.ts";
import { REPLACED } from "#core/sockets.ts";
import { BAD_CERTIFICATE, CERTIFICATE_REQUIRED, type NativeTls, type SslContext } from "#platform/tls.ts";
import { NativeTlsStream } from "./native-stream.ts";
import type { NativeStreamOptions } from "./native-stream-options.ts";
import type { HandshakeFacts, Handshake } from "./server-handshake.ts";

export interface NativeAccept {
  readonly native: NativeTls;
  readonly context: SslContext;
  /** TLS may be left behind. */
  readonly exact: boolean;
}

/** A kernel socket of which nothing was read. */
export function canGoNative(stream: Duplex): stream is Socket {
  if (!isPlainSocket(stream) || stream.destroyed || stream.connecting) return false;
  return (
    descriptorOf(stream) >= 0 && stream.readableLength + stream.writableLength === 0 && stream.bytesRead === 0
  );
}

/** The socket is destroyed, and its descriptor lives on in the stream. Throws `ProtocolError` where the system has no room. */
export function acceptNatively(socket: Socket, { native, context, exact }: NativeAccept): Handshake {
  const { address } = context; // throws where it has gone: before there is anything to close
  const fd = native.calls.duplicate(descriptorOf(socket));
  const ssl = fd < 0 ? 0n : native.ssl.accept(address, fd, !exact);
  const stream = openStream(native, { fd, ssl, isDone: false, exact });
  if (stream !== null) socket.emit(REPLACED, stream);
  socket.destroy();
  return handshakeOf(native, stream, false);
}

/**
 * Continues a handshake that a worker has begun or finished. Throws `ProtocolError` when it failed there, or when the
 * system is out of descriptors or memory.
 */
export function continueHandshake(client: OffloadedTls, { native, context, exact }: NativeAccept): Handshake {
  if (client.failure !== null) throw new ProtocolError(client.failure);
  const { isDone } = client;
  const { address } = context;
  const { fd, ssl } = client.take();
  // What its thread would have been asked (ALPN) this one is: a callback belongs to its thread.
  const isOurs = isDone || native.ssl.moveTo(ssl, address);
  if (!exact) native.ssl.readAhead(ssl);
  const stream = isOurs ? openStream(native, { fd, ssl, isDone, exact }) : discard(native, fd, ssl);
  if (stream !== null) client.continueBy(stream);
  return handshakeOf(native, stream, isDone);
}

function handshakeOf(native: NativeTls, stream: NativeTlsStream | null, isDone: boolean): Handshake {
  if (stream === null) throw new ProtocolError("no descriptor or memory is left for TLS");
  const facts = (): HandshakeFacts => factsOf(native.contexts, stream);
  const sayRefused = (given: boolean): void =>
    native.sendAlert(stream.object, given ? BAD_CERTIFICATE : CERTIFICATE_REQUIRED);
  return { stream, below: stream, isDone, facts, sayRefused };
}

function discard({ calls, ssl }: NativeTls, fd: number, object: bigint): null {
  ssl.free(object);
  calls.close(fd);
  return null;
}

/** Null: something of it could not be had, and nothing is left of it. */
function openStream(native: NativeTls, options: NativeStreamOptions): NativeTlsStream | null {
  const { fd, ssl } = options;
  try {
    if (ssl !== 0n) return new NativeTlsStream(native, options);
  } catch {
    native.ssl.free(ssl); // the event loop cannot watch it
  }
  if (fd >= 0) native.calls.close(fd);
  return null;
}

function factsOf(contexts: NativeTls["contexts"], stream: NativeTlsStream): HandshakeFacts {
  const { object } = stream;
  return {
    alpn: contexts.alpnOf(object),
    serverName: contexts.serverNameOf(object)?.toLowerCase() || null,
    bypass: stream.exact && contexts.versionOf(object) === "TLSv1.3" ? stream : null,
    client: contexts.clientCertificate(object),
  };
}
