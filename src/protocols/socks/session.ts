/** What the accepting side answers its clients, and the sessions of those that ask to connect. */
import type { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { Destination, Endpoint, StreamSession } from "#core/session.ts";
import { describe, endWithReply, type ListenerContext } from "#net/listen/accept.ts";
import { AcceptedSession, type DialReply } from "#net/listen/accepted-session.ts";
import type { Decoded } from "#net/stream/byte-reader.ts";
import * as replies from "./replies.ts";
import { SOCKS4_SUCCESS, socks5Success } from "./success.ts";
import * as wire from "./wire.ts";

/** Null: this client needs no credentials. */
type UserName = string | null;

const REPLY_4 = dialReply(SOCKS4_SUCCESS, () => wire.encodeReply4(91));

/** `local`: the listening side's own address. */
function reply5(local: Endpoint): DialReply {
  return dialReply(socks5Success(local), (failure) => wire.encodeReply(replies.codeOf(failure)));
}

function dialReply(success: Buffer, encodeFailure: (failure: Error) => Buffer): DialReply {
  const fail = (stream: Duplex, failure: Error): void => {
    if (replies.isDropped(failure)) stream.destroy();
    else endWithReply(stream, encodeFailure(failure));
  };
  return { success, fail };
}

export function socks4Session(
  connection: AcceptedConnection,
  destination: Destination,
  user: UserName,
  listener: ListenerContext,
): StreamSession {
  const metadata = describe(listener, connection, { network: "tcp", type: "Socks4", user, destination });
  return new AcceptedSession(metadata, connection, REPLY_4);
}

export function socks5Session(
  connection: AcceptedConnection,
  destination: Destination,
  user: UserName,
  listener: ListenerContext,
): StreamSession {
  const metadata = describe(listener, connection, { network: "tcp", type: "Socks5", user, destination });
  return new AcceptedSession(metadata, connection, reply5(connection.local));
}

/** `request`: as a worker has read it. */
export function requestedSocks4(
  connection: AcceptedConnection,
  request: Buffer,
  listener: ListenerContext,
): StreamSession {
  const { value } = wire.decodeRequest4(request) as Decoded<wire.Request4>;
  return socks4Session(connection, value.destination, null, listener);
}

/** The same; the greeting, which stood in front of the request, has been answered. */
export function requestedSocks5(
  connection: AcceptedConnection,
  request: Buffer,
  listener: ListenerContext,
): StreamSession {
  const { value } = wire.decodeRequest(request) as Decoded<wire.Request>;
  return socks5Session(connection, value.destination as Destination, null, listener);
}
