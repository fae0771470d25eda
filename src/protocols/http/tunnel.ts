import type { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { Destination, StreamSession } from "#core/session.ts";
import { describe, endWithReply, type ListenerContext } from "#net/listen/accept.ts";
import { AcceptedSession, type DialReply } from "#net/listen/accepted-session.ts";
import type { Decoded } from "#net/stream/byte-reader.ts";
import { answerTo, encodeAnswer } from "./answers.ts";
import { parseConnectTarget } from "./authority.ts";
import { tunnelSuccess } from "./tunnel-success.ts";
import { decodeConnect, type ConnectRequest } from "./head.ts";

type Version = ConnectRequest["version"];

export interface TunnelRequest {
  readonly version: Version;
  /** Null: this client needs no credentials. */
  readonly user: string | null;
  readonly destination: Destination;
}

/** For a client that asked for CONNECT. It learns the outcome when the dial is decided. */
export function tunnelSession(
  connection: AcceptedConnection,
  { version, user, destination }: TunnelRequest,
  listener: ListenerContext,
): StreamSession {
  const metadata = describe(listener, connection, { network: "tcp", type: "HTTPS", user, destination });
  return new AcceptedSession(metadata, connection, replyOf(version));
}

/** `request`: as a worker has read it. */
export function requestedTunnel(
  connection: AcceptedConnection,
  request: Buffer,
  listener: ListenerContext,
): StreamSession {
  const { value } = decodeConnect(request, 0) as Decoded<ConnectRequest>;
  const destination = parseConnectTarget(value.target) as Destination;
  return tunnelSession(connection, { version: value.version, user: null, destination }, listener);
}

function replyOf(version: Version): DialReply {
  const success = tunnelSuccess(version);
  const fail = (stream: Duplex, failure: Error): void => {
    const answer = answerTo(failure);
    if (answer === null) stream.destroy();
    else endWithReply(stream, encodeAnswer(answer, version, false));
  };
  return { success, fail };
}
