/** What the accepting side tells its clients, and the sessions of those that a relay thread holds. */
import type { Duplex } from "node:stream";
import type { WorkerConnection } from "#core/held.ts";
import type { Destination, Endpoint, StreamSession } from "#core/session.ts";
import { describe, endWithReply, type ListenerContext } from "#net/listen/accept.ts";
import type { Decoded } from "#net/stream/byte-reader.ts";
import { OffloadedSession } from "#net/listen/worker-session.ts";
import * as replies from "./replies.ts";
import * as wire from "./wire.ts";

type Teller = (failure: Error | null) => void;

export function teller4(stream: Duplex): Teller {
  return teller(stream, (failure) => wire.encodeReply4(failure === null ? 90 : 91));
}

/** `local`: the listening side's own address. */
export function teller5(stream: Duplex, local: Endpoint): Teller {
  return teller(stream, (failure) =>
    failure === null ? connected5(local) : wire.encodeReply(replies.codeOf(failure)),
  );
}

function connected5(local: Endpoint): Buffer {
  return wire.encodeReply(0, { host: null, ...local });
}

function teller(stream: Duplex, encode: (failure: Error | null) => Buffer): Teller {
  return (failure) => {
    if (failure === null) stream.write(encode(null));
    else if (replies.isDropped(failure)) stream.destroy();
    else endWithReply(stream, encode(failure));
  };
}

export function socks4Session(client: WorkerConnection, place: ListenerContext): StreamSession {
  const { destination } = (wire.decodeRequest4(client.request) as Decoded<wire.Request4>).value;
  const metadata = describe(place, client, { network: "tcp", type: "Socks4", user: null, destination });
  return new OffloadedSession(metadata, client, wire.encodeReply4(90), teller4);
}

export function socks5Session(client: WorkerConnection, place: ListenerContext): StreamSession {
  const { value } = wire.decodeRequest(client.request) as Decoded<wire.Request>;
  const destination = value.destination as Destination;
  const metadata = describe(place, client, { network: "tcp", type: "Socks5", user: null, destination });
  const { local } = client;
  return new OffloadedSession(metadata, client, connected5(local), (stream) => teller5(stream, local));
}
