/** The body of a request over HTTP/3 that is not read, from a thread of QUIC to the main one: what is taken of it is bounded. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { encodeHeaders } from "#transport/http3/request.ts";
import { RequestReader } from "#transport/http3/request-reader.ts";
import type { FromThread } from "#transport/quic/remote/messages.ts";
import { RemoteStream } from "#transport/quic/remote/remote-stream.ts";
import { ThreadStream } from "#transport/quic/remote/thread-stream.ts";
import { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { ReceivePart } from "#transport/quic/streams/receive-part.ts";

/** Of a visitor's connection. */
const WINDOW_BYTES = 2 ** 18;
const PACKET_BYTES = 1_200;
const REQUEST = Buffer.concat([
  encodeHeaders([
    [":method", "POST"],
    [":scheme", "https"],
    [":authority", "server.test"],
    [":path", "/"],
  ]),
  Buffer.from("0080200000", "hex"), // a DATA frame of 2 MiB
  Buffer.alloc(2 ** 21),
]);
const ignore = (): void => {};

/** Both threads, each of which has its turn when it is told. */
class UnreadRequest {
  sentBytes = 0;
  #limit = WINDOW_BYTES;
  #takenBytes = 0;
  readonly #said: FromThread[] = [];
  readonly #took: number[] = [];
  readonly #stream: QuicStream;
  readonly #thread: ThreadStream;
  readonly #remote: RemoteStream;

  constructor() {
    const host = {
      sendBufferBytes: WINDOW_BYTES,
      onWritten: ignore,
      onConsumed: (_: QuicStream, bytes: number) => this.#onConsumed(bytes),
      onReset: ignore,
      onStopped: ignore,
    };
    const parts = { send: null, receive: new ReceivePart(REQUEST.length), abortCode: 0 };
    this.#stream = new QuicStream(host, 0, parts);
    const post = (message: FromThread): void => void this.#said.push(message);
    this.#thread = new ThreadStream({ number: 1, post, onClosed: ignore }, this.#stream, 0);
    const client = {
      number: 1,
      worker: {},
      write: ignore,
      finish: ignore,
      destroy: ignore,
      took: (_: number, bytes: number) => void this.#took.push(bytes),
      flush: ignore,
      onClosed: ignore,
    };
    this.#remote = new RemoteStream(client, 0, { reads: true, writes: false });
    new RequestReader(this.#remote, {
      takeStream: () => null,
      onSection: () => true,
      onHeaders: ignore,
      onFault: (code) => assert.fail(`fault ${code}`),
    });
  }

  /** As the connection does: the peer is told a new limit behind half of the window. */
  #onConsumed(bytes: number): void {
    this.#takenBytes += bytes;
    if (this.#limit - this.#takenBytes <= WINDOW_BYTES / 2) this.#limit = this.#takenBytes + WINDOW_BYTES;
  }

  get isStuck(): boolean {
    const isSilent = this.#said.length === 0 && this.#took.length === 0;
    return isSilent && this.sentBytes === Math.min(this.#limit, REQUEST.length);
  }

  /** So many bytes have come since the thread last ran. */
  async turn(bytes: number): Promise<void> {
    const end = Math.min(this.sentBytes + bytes, this.#limit, REQUEST.length);
    for (let next = 0; this.sentBytes < end; this.sentBytes = next) {
      next = Math.min(this.sentBytes + PACKET_BYTES, end);
      this.#stream.takeFrame(this.sentBytes, REQUEST.subarray(this.sentBytes, next), false, ignore);
    }
    this.#stream.handOver();
    await settle();
    for (const message of this.#said.splice(0)) if (message.op === "data") this.#remote.onData(message.bytes);
    await settle();
    for (const took of this.#took.splice(0)) this.#thread.onTook(took);
    await settle();
  }
}

/** Streams have done what they put off. */
async function settle(): Promise<void> {
  for (let left = 4; left > 0; left--) await setImmediate();
}

test("of a body that is not read two windows at most are taken, however late threads have their turns", async () => {
  const late = fc.oneof(fc.integer({ min: 1, max: 20_000 }), fc.integer({ min: 1, max: WINDOW_BYTES }));
  const property = fc.asyncProperty(fc.array(late, { minLength: 40, maxLength: 60 }), async (turns) => {
    const request = new UnreadRequest();
    await settle();
    for (const bytes of turns) await request.turn(bytes);
    while (!request.isStuck) await request.turn(WINDOW_BYTES);
    assert.ok(request.sentBytes < 2 * WINDOW_BYTES, `${request.sentBytes} bytes were taken`);
  });
  await fc.assert(property, { numRuns: 60 });
});
