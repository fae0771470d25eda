/** Sessions of smux and yamux whose frames workers read: what is left of them here is who may open streams, and where these lead to. */
import type { WorkerConnection } from "#core/accepted.ts";
import type { Destination } from "#core/session.ts";
import type { ClientSession } from "#core/wire-details.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { DialReply } from "#net/listen/accepted-session.ts";
import { type PendingClient, shownBehind } from "#net/listen/first-bytes.ts";
import type { ClientStream } from "#net/listen/opened-session.ts";
import type { MuxServerOptions } from "#transport/mux/fields.ts";
import { type Preface, takePreface } from "#transport/mux/preface.ts";
import { encodeAnswer, takeStreamRequest } from "#transport/mux/request.ts";
import { type MuxContext, refuseDial, serveOther } from "./inbound.ts";

/** What a stream is answered that this thread serves, in front of its data. */
const ANSWER: DialReply = { success: Uint8Array.from(encodeAnswer(null)), fail: refuseDial };

interface KeptMuxContext extends Pick<MuxContext, "onFlow" | "log"> {
  readonly onStream: (stream: WorkerConnection, destination: Destination, reply: DialReply) => void;
}

/** What a client that has asked for the mux name goes on with; null: its preface is not there yet, or is of what no worker reads. */
export function keptMux(
  client: PendingClient,
  opened: ClientStream,
  options: MuxServerOptions | undefined,
): ClientSession | null {
  const shown = shownBehind(client);
  if (shown === null || options?.padding === true) return null;
  const ahead = opened.ahead(shown);
  const arrived = new ByteQueue();
  arrived.push(Buffer.from(ahead));
  const preface = prefaceOf(arrived);
  if (preface === null || preface.padding || preface.protocol === "h2mux") return null;
  return { frames: preface.protocol, prefaceBytes: ahead.length - arrived.length };
}

function prefaceOf(arrived: ByteQueue): Preface | null {
  try {
    return takePreface(arrived);
  } catch {
    return null; // who serves the client says so
  }
}

/** A stream that a worker has found in such a session. */
export function acceptKeptMux(connection: WorkerConnection, context: KeptMuxContext): void {
  const arrived = new ByteQueue();
  arrived.push(connection.request ?? Buffer.alloc(0));
  const request = takeStreamRequest(arrived);
  if (request === null) return connection.reset(); // the worker has read a whole one
  if (!serveOther(request, () => connection.stream(), context))
    context.onStream(connection, request.destination, ANSWER);
}
