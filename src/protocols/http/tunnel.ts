import type { Duplex } from "node:stream";
import type { WorkerConnection } from "#core/held.ts";
import type { InboundEnv } from "#core/inbound.ts";
import type { Destination, StreamSession } from "#core/session.ts";
import { describe, endWithReply, streamSession, type ListenerContext } from "#net/listen/accept.ts";
import type { Decoded } from "#net/stream/byte-reader.ts";
import { OffloadedSession } from "#net/listen/worker-session.ts";
import type { Client } from "#protocols/mixed/client.ts";
import { answerTo, encodeAnswer } from "./answers.ts";
import { parseConnectTarget } from "./authority.ts";
import { decodeConnect, type ConnectRequest } from "./head.ts";

type Version = ConnectRequest["version"];

/** Hands a client that asked for CONNECT over. The client learns the outcome when the dial is decided. */
export function openTunnel(
  { stream, arrival }: Client,
  version: Version,
  user: string | null,
  destination: Destination,
  env: InboundEnv,
): void {
  const metadata = describe(env, arrival, { network: "tcp", type: "HTTPS", user, destination });
  env.accept(streamSession(metadata, stream, teller(stream, version)));
}

/** The same for a client that a relay thread holds. */
export function connectSession(client: WorkerConnection, place: ListenerContext): StreamSession {
  const { value } = decodeConnect(client.request, 0) as Decoded<ConnectRequest>;
  const { target, version } = value;
  const destination = parseConnectTarget(target) as Destination;
  const metadata = describe(place, client, { network: "tcp", type: "HTTPS", user: null, destination });
  return new OffloadedSession(metadata, client, established(version), (stream) => teller(stream, version));
}

function established(version: Version): Buffer {
  return Buffer.from(`HTTP/${version} 200 Connection established\r\n\r\n`);
}

function teller(stream: Duplex, version: Version) {
  return (failure: Error | null): void => {
    if (failure === null) {
      stream.write(established(version));
      return;
    }
    const answer = answerTo(failure);
    if (answer === null) stream.destroy();
    else endWithReply(stream, encodeAnswer(answer, version, false));
  };
}
