/** Connections as listeners hand them over. */
import type { Duplex } from "node:stream";
import type { AcceptedConnection, WorkerConnection } from "#core/accepted.ts";
import type { Endpoint } from "#core/session.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { connectionEnds } from "#net/listen/accept.ts";
import type { AcceptOptions } from "#net/listen/accept-offload.ts";
import { StreamConnection } from "#net/listen/stream-connection.ts";
import type { Socket } from "node:net";

const NEAR: Endpoint = { ip: LOOPBACK_V4, port: 1 };

/** A connection of the event loop over any stream. */
export function acceptedStream(stream: Duplex, source = NEAR, local = NEAR): StreamConnection {
  return new StreamConnection(stream, { source, local });
}

/** The same with the ends that the kernel names; of a socket that is gone, made-up ones. */
export function acceptedSocket(socket: Socket): StreamConnection {
  return new StreamConnection(socket, connectionEnds(socket) ?? { source: NEAR, local: NEAR });
}

/** A listener without a handshake: `on` gets what workers accept, `onStream` what the event loop does. */
export function byWorkers(
  on: (worker: WorkerConnection) => void,
  onStream: (stream: Duplex) => void = (stream) => void stream.destroy(),
): AcceptOptions {
  const onAccepted = (connection: AcceptedConnection): void => {
    const { worker } = connection;
    if (worker === null) onStream(connection.stream());
    else on(worker);
  };
  return { handshake: "none", probes: null, onAccepted };
}
