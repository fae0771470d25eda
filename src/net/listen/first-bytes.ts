import type { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { readHandshake, type HandshakeStep } from "./read-handshake.ts";

/** A client whose handshake is to be read. Looking at `stream` takes the socket from a worker that has it. */
export interface PendingClient {
  readonly stream: Duplex;
  /** Its connection, where a worker may keep the socket. */
  readonly connection?: AcceptedConnection;
}

/**
 * As `readHandshake`, of a client whose first bytes a worker may have read: where these are enough, the worker keeps the
 * socket. Throws what `step` throws.
 */
export async function readFirst<T>(
  client: PendingClient,
  step: HandshakeStep<T>,
  deadlineMs: number,
): Promise<T> {
  const { worker = null } = client.connection ?? {};
  if (worker === null || worker.request === null) return await readHandshake(client.stream, step, deadlineMs);
  const { request } = worker;
  const arrived = new ByteQueue();
  arrived.push(request);
  const answer = step(arrived);
  if (answer === null) return await readHandshake(client.stream, step, deadlineMs, arrived);
  worker.understood(request.length - arrived.length);
  return answer;
}

/** What `readFirst` has found in the bytes that a worker had read, found once more. */
export function readAgain<T>({ connection }: PendingClient, step: HandshakeStep<T>): T {
  const arrived = new ByteQueue();
  arrived.push(connection?.request ?? Buffer.alloc(0));
  const answer = step(arrived);
  if (answer === null) throw new Error("a handshake that was understood is not any more");
  return answer;
}

/**
 * For a client that is about to be ended: what a worker has read of it is taken from its socket, for a close over unread bytes
 * is a reset.
 */
export function readAll({ connection }: Pick<PendingClient, "connection">): void {
  const worker = connection?.worker ?? null;
  if (worker !== null && worker.request !== null) worker.understood(worker.request.length);
}

/** The stream of a client of whom nothing was understood, with what a worker has read of it put back. */
export function streamUnread(client: PendingClient): Duplex {
  const shown = client.connection?.worker?.request ?? null;
  readAll(client);
  const { stream } = client;
  if (shown !== null && !stream.destroyed) stream.unshift(shown);
  return stream;
}
