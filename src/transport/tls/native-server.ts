/** The accepting side of TLS by the runtime's own libssl, on the descriptor of a kernel socket. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import { descriptorOf, isPlainSocket } from "#core/handover.ts";
import { REPLACED } from "#core/sockets.ts";
import type { NativeTls, SslContext } from "#platform/tls.ts";
import { NativeTlsStream } from "./native-stream.ts";
import type { HandshakeFacts, Shaking } from "./server.ts";

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
export function shakeNatively(socket: Socket, { native, context, exact }: NativeAccept): Shaking {
  const { calls, contexts } = native;
  const fd = calls.duplicate(descriptorOf(socket));
  const stream = fd < 0 ? null : openStream(native, { fd, context, exact });
  if (stream === null) {
    socket.destroy();
    throw new ProtocolError("no descriptor or memory is left for TLS");
  }
  socket.emit(REPLACED, stream);
  socket.destroy();
  return { stream, below: stream, facts: () => factsOf(contexts, stream) };
}

function openStream(
  native: NativeTls,
  { fd, context, exact }: { fd: number; context: SslContext; exact: boolean },
): NativeTlsStream | null {
  const { calls, ssl } = native;
  const object = ssl.accept(context.address, fd, !exact);
  try {
    if (object !== 0n) return new NativeTlsStream(native, { fd, ssl: object, exact });
  } catch {
    ssl.free(object); // the event loop cannot watch it
  }
  calls.close(fd);
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
