/** The few shapes that decoders have, each driven to where it wants more or has refused. */
import { Duplex, PassThrough } from "node:stream";
import type { Decoder } from "#net/stream/byte-reader.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";

export interface Target {
  readonly name: string;
  /** Good messages. */
  readonly seeds: readonly Buffer[];
  /** Gives one input to a fresh decoder. Throws what the decoder throws. */
  run(pieces: readonly Buffer[]): void;
}

type Step = (arrived: ByteQueue) => unknown;

/** A message a call from a queue, until there is no whole one. */
export function steps(name: string, seeds: readonly Buffer[], make: () => Step, bound = Infinity): Target {
  return {
    name,
    seeds,
    run(pieces) {
      const step = make();
      const arrived = new ByteQueue();
      let left = bound;
      for (const piece of pieces) {
        arrived.push(piece);
        for (let before = -1; left > 0 && before !== arrived.length; left--) {
          before = arrived.length;
          if (step(arrived) === null) break;
        }
      }
    },
  };
}

/** A handshake: one message, then it is over. */
export const handshake = (name: string, seeds: readonly Buffer[], make: () => Step): Target => ({
  name,
  seeds,
  run(pieces) {
    const step = make();
    const arrived = new ByteQueue();
    for (const piece of pieces) {
      arrived.push(piece);
      if (step(arrived) !== null) return;
    }
  },
});

/** A decoder over all that has come. */
export const whole = (name: string, seeds: readonly Buffer[], decode: Decoder<unknown>): Target => ({
  name,
  seeds,
  run(pieces) {
    let all: Buffer = Buffer.alloc(0);
    for (const piece of pieces) {
      const seen = all.length;
      all = all.length === 0 ? piece : Buffer.concat([all, piece]);
      if (decode(all, seen) !== null) return;
    }
  },
});

/** A reader of a stream, which it is given. */
export const over = (name: string, seeds: readonly Buffer[], read: (stream: Duplex) => void): Target => ({
  name,
  seeds,
  run(pieces) {
    const stream = new PassThrough();
    read(stream);
    for (const piece of pieces) stream.emit("data", piece);
    stream.destroy();
  },
});

/** Plain bytes that come out must not be many more than went in. */
const MOST_OUT_PER_IN = 4;

export const codec = (name: string, seeds: readonly Buffer[], make: () => StreamCodec): Target => ({
  name,
  seeds,
  run(pieces) {
    const made = make();
    let [came, gone] = [0, 0];
    let ended = false;
    for (const piece of pieces) {
      came += piece.length;
      made.open(piece, (plain) => {
        ended ||= plain === null;
        gone += plain?.length ?? 0;
      });
      if (gone > came * MOST_OUT_PER_IN + 4096) throw new Error(`${gone} bytes out of ${came}`);
      if (ended) return;
    }
    made.openEnd();
  },
});

/** One message, given as a text or as a datagram. */
export const once = (name: string, seeds: readonly Buffer[], decode: (bytes: Buffer) => unknown): Target => ({
  name,
  seeds,
  run: (pieces) => void decode(pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)),
});

/** A connection whose input is put in by hand. What is written to it counts, and goes nowhere. */
class HandFed extends Duplex {
  written = 0;
  override _read(): void {}
  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.written += bytes.length;
    done();
  }
}

const MOST_WRITTEN = 1 << 20;

/** Many streams in one connection. `start` may keep what it opens; the connection ends with the input. */
export const session = (name: string, seeds: readonly Buffer[], start: (wire: Duplex) => void): Target => ({
  name,
  seeds,
  run(pieces) {
    const wire = new HandFed();
    wire.on("error", () => {});
    start(wire);
    for (const piece of pieces) if (!wire.destroyed) wire.emit("data", piece);
    if (wire.written > MOST_WRITTEN) throw new Error(`${wire.written} bytes were answered`);
    wire.emit("close");
    wire.destroy();
  },
});
