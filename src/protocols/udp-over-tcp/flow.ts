import type { Duplex } from "node:stream";
import type { Datagram, DatagramFlow } from "#core/session.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { onEnd } from "#net/stream/late-end.ts";
import { asError } from "#core/errors.ts";

/** Bytes that the stream has not passed on yet; beyond, datagrams are dropped, as a full network queue would. */
const MAX_QUEUED_BYTES = 512 * 1024;

/** How a stream carries datagrams. One object serves one stream. */
export interface DatagramFraming {
  /** The wire form, in memory of its own; may throw for a datagram that the format cannot hold: it is dropped. */
  encode(item: Datagram): Buffer;
  /** Takes the next whole datagram; null: more bytes are needed. Throws `ProtocolError`. */
  take(arrived: ByteQueue): Datagram | null;
}

/** A path for datagrams through a stream, which it owns. Its end is the stream's; a malformed stream is destroyed. */
export class StreamFlow implements DatagramFlow {
  readonly closed: Promise<void>;
  readonly #stream: Duplex;
  readonly #framing: DatagramFraming;
  /** Goes out with the first datagram. */
  #opening: Buffer | null;

  constructor(stream: Duplex, framing: DatagramFraming, opening: Buffer | null = null) {
    this.#stream = stream;
    this.#framing = framing;
    this.#opening = opening;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    stream.on("error", () => {}); // 'close' follows, and the reason has no receiver
    stream.on("close", () => resolve());
    onEnd(stream, () => stream.destroy());
    if (stream.destroyed) resolve();
  }

  send(item: Datagram): void {
    const stream = this.#stream;
    if (!stream.writable || stream.writableLength > MAX_QUEUED_BYTES) return;
    let bytes: Buffer;
    try {
      bytes = this.#framing.encode(item);
    } catch {
      return; // too long, or a name that no address field holds: lost, as datagrams may be
    }
    if (this.#opening !== null) bytes = Buffer.concat([this.#opening, bytes]);
    this.#opening = null;
    stream.write(bytes);
  }

  receive(on: (item: Datagram) => void): void {
    const arrived = new ByteQueue();
    this.#stream.on("data", (bytes: Buffer) => {
      arrived.push(bytes);
      try {
        for (let item = this.#framing.take(arrived); item !== null; item = this.#framing.take(arrived))
          on(item);
      } catch (error) {
        this.#stream.destroy(asError(error));
      }
    });
    this.#stream.resume(); // a handshake before may have paused it
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stream.destroy();
    await this.closed;
  }
}
