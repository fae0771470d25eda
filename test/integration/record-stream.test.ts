/** A stream of records whose connection is over before its reader has taken all. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { RecordConnection } from "#transport/record-connection.ts";
import { RecordStream } from "#transport/record-stream.ts";
import { readAll } from "../support/client.ts";
import { openTcpOrigin } from "../support/origin.ts";

/** Records are so many bytes as they are. */
const RECORD_BYTES = 1_000;

class Bare implements RecordConnection {
  readonly isSecure = true;
  readonly hasEnded = false;
  readonly wireKind = "encrypted";
  readonly canDepart = false;
  readonly #arrived = new ByteQueue();

  get unreadBytes(): number {
    return this.#arrived.length;
  }

  start(): void {}
  feed = (bytes: Buffer): void => this.#arrived.push(bytes);
  read = (): Buffer | null => this.#arrived.take(RECORD_BYTES);
  write = (payload: Buffer): Buffer => payload;
  end = (): Buffer => Buffer.alloc(0);
  takeOutput = (): null => null;
  takeUnread = (): Buffer => this.#arrived.takeAll();
  depart = (): never => assert.fail("it cannot be given");
  [Symbol.dispose](): void {}
}

test("what came before the end is read, though the connection below is over meanwhile", async () => {
  const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
  await using origin = await openTcpOrigin(resolve);
  const client = connect({ port: origin.port, host: "127.0.0.1", allowHalfOpen: true });
  const sent = randomBytes(60 * RECORD_BYTES);
  client.end(sent);
  client.resume();
  const below = await accepted;
  const stream = new RecordStream(below, new Bare());
  stream.end();
  stream.read(0); // its reader takes no more than the first
  await once(below, "close");
  assert.equal(stream.destroyed, false);
  assert.deepEqual(await readAll(stream), sent);
  if (!stream.closed) await once(stream, "close");
  assert.equal(stream.errored, null);
});

test("an end that was read before the stream was made is its end, too", async () => {
  const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
  await using origin = await openTcpOrigin(resolve);
  const client = connect({ port: origin.port, host: "127.0.0.1", allowHalfOpen: true });
  client.end();
  const below = await accepted;
  below.resume();
  await once(below, "end");
  const stream = new RecordStream(below, new Bare());
  const answer = readAll(client);
  assert.deepEqual(await readAll(stream), Buffer.alloc(0));
  stream.end("answer");
  assert.equal(String(await answer), "answer");
});
