/** Streams whose bytes the other side sends back, checked by their hashes. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { type QuicNetwork, seededRandom } from "./quic-network.ts";

const sha = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Sends back all that comes, and the end behind it. */
export function echo(stream: QuicStream): void {
  stream.on("error", () => {});
  stream.on("data", (bytes: Buffer) => {
    if (stream.write(bytes)) return;
    stream.pause();
    stream.once("drain", () => stream.resume());
  });
  stream.on("end", () => stream.end());
}

/** Settles by `isDone` when all came back, and compares. */
export class Echoed {
  isDone = false;
  readonly #hash = createHash("sha256");
  readonly #bytes: Buffer;

  constructor(stream: QuicStream, bytes: Buffer) {
    this.#bytes = bytes;
    stream.on("data", (piece: Buffer) => this.#hash.update(piece));
    stream.on("end", () => (this.isDone = true));
    stream.on("error", (error) => assert.fail(error));
    stream.end(bytes);
  }

  check(): void {
    assert.equal(this.#hash.digest("hex"), sha(this.#bytes));
  }
}

export function bytesOf(random: () => number, size: number): Buffer {
  return Buffer.from(Uint8Array.from({ length: size }, () => random() * 256));
}

/** So many streams at once, each echoed; answers with the network as it was left. */
export async function echoAll(network: QuicNetwork, sizes: readonly number[]): Promise<QuicNetwork> {
  const random = seededRandom(7);
  const streams: Echoed[] = [];
  network.server.onStream = echo;
  network.client.onConnected = () => {
    const open = (size: number): void => {
      const stream = network.client.made.open(true);
      if (stream === null) network.client.made.whenAllowed(true, () => open(size));
      else streams.push(new Echoed(stream, bytesOf(random, size)));
    };
    for (const size of sizes) open(size);
  };
  await network.run(() => streams.length === sizes.length && streams.every(({ isDone }) => isDone));
  for (const stream of streams) stream.check();
  return network;
}
