import type { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { WireStart } from "#core/wire-state.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { readHandshake, type HandshakeStep } from "./read-handshake.ts";

/** A client whose handshake is to be read. Looking at `stream` takes the socket from a worker that has it. */
export interface PendingClient {
  readonly stream: Duplex;
  /** Its connection, where a worker may keep the socket. */
  readonly connection?: AcceptedConnection;
  /** What lies between that socket and the client's bytes; absent: nothing. */
  readonly frames?: ClientFrames;
}

/** Frames around what a worker shows of a client. */
export interface ClientFrames {
  /** Of all that it shows. */
  readonly payload: Buffer;
  /** Only so much of that was the handshake: so many bytes of the socket. The rest is read once more. */
  understood(payloadBytes: number): number;
  /** What follows that. */
  readonly behind: Buffer;
  /** What lies over the socket behind that, where such a wire lies over the frames. */
  over(wire: WireStart): WireStart;
}

type ShownClient = Pick<PendingClient, "connection" | "frames">;

/** Null: no worker has read anything of it. */
function shownOf({ connection, frames }: ShownClient): Buffer | null {
  const request = connection?.worker?.request ?? null;
  return request === null ? null : (frames?.payload ?? request);
}

/** Only so many bytes of what is shown were the handshake. */
function understood({ connection, frames }: ShownClient, bytes: number): void {
  connection?.worker?.understood(frames?.understood(bytes) ?? bytes);
}

/** What a worker shows of a client behind the handshake that was understood; null: no worker has read anything of it. */
export function shownBehind({ connection, frames }: ShownClient): Buffer | null {
  const worker = connection?.worker ?? null;
  if (worker === null || worker.request === null) return null;
  return frames?.behind ?? worker.request.subarray(worker.handshakeBytes);
}

/**
 * As `readHandshake`, of a client whose first bytes a worker may have read: where these are enough, the answer is there at
 * once, and the worker keeps the socket. Throws, or rejects with, what `step` throws.
 */
export function readFirst<T>(
  client: PendingClient,
  step: HandshakeStep<T>,
  deadlineMs: number,
): T | Promise<T> {
  const shown = shownOf(client);
  if (shown === null || shown.length === 0) return readHandshake(client.stream, step, deadlineMs);
  const arrived = new ByteQueue();
  arrived.push(shown);
  const answer = step(arrived);
  if (answer === null) return readHandshake(client.stream, step, deadlineMs, arrived);
  understood(client, shown.length - arrived.length);
  return answer;
}

/** What `readFirst` has found in the bytes that a worker had read, found once more. */
export function readAgain<T>(client: PendingClient, step: HandshakeStep<T>): T {
  const arrived = new ByteQueue();
  arrived.push(client.frames?.payload ?? client.connection?.request ?? Buffer.alloc(0));
  const answer = step(arrived);
  if (answer === null) throw new Error("a handshake that was understood is not any more");
  return answer;
}

/**
 * For a client that is about to be ended: what a worker has read of it is taken from its socket, for a close over unread bytes
 * is a reset.
 */
export function readAll(client: ShownClient): void {
  const shown = shownOf(client);
  if (shown !== null) understood(client, shown.length);
}

/** The stream of a client of whom nothing was understood, with what a worker has read of it put back. */
export function streamUnread(client: PendingClient): Duplex {
  const shown = shownOf(client);
  readAll(client);
  const { stream } = client;
  if (shown !== null && !stream.destroyed) stream.unshift(shown);
  return stream;
}
