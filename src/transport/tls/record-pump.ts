/**
 * Leaves TLS one direction at a time, for protocols that stop encrypting payload that is encrypted already
 * (xtls-rprx-vision). TLS is built over `wire`, which hands it exactly one record at a time. The library decrypts a
 * record and emits its plaintext before the push returns, so the consumer of the plaintext can stop the pump while the
 * bytes behind that record are still untouched here.
 */
import { Duplex } from "node:stream";
import type { Bypass, RawSink } from "#core/tls-bypass.ts";
import { ByteQueue } from "#lib/byte-queue.ts";

export interface RecordPump extends Bypass {
  /** What TLS is to be built over. */
  readonly wire: Duplex;
}

const HEADER_BYTES = 5;
/** 2^14 and the most that TLS 1.2 adds; a longer record is no TLS, and TLS itself says so when it gets it. */
const MAX_RECORD_BYTES = 16_384 + 2048;

export function openRecordPump(below: Duplex): RecordPump {
  return new Pump(below);
}

class Pump implements RecordPump {
  readonly wire: Wire;
  readonly #below: Duplex;
  readonly #queue = new ByteQueue();
  #sink: RawSink | null = null;
  #held = false;
  #ended = false;
  #endSaid = false;
  #pumping = false;

  constructor(below: Duplex) {
    this.#below = below;
    this.wire = new Wire(below, () => this.#pump());
    below.on("data", (bytes: Buffer) => {
      this.#queue.push(bytes);
      this.#pump();
    });
    below.on("end", () => {
      this.#ended = true;
      this.#pump();
    });
    below.on("error", (error) => this.wire.destroy(error));
    below.on("close", () => {
      if (!this.#ended) this.wire.destroy();
    });
  }

  leaveRead(sink: RawSink): void {
    this.#sink = sink;
  }

  leaveWrite(): Duplex {
    this.wire.left = true;
    return this.#below;
  }

  get below(): Duplex | null {
    const left = this.#sink !== null && this.wire.left && this.#queue.length === 0 && !this.#held;
    return left ? this.#below : null;
  }

  hold(): void {
    this.#held = true;
    this.#below.pause();
  }

  release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#pump();
    if (!this.#held) this.#below.resume();
  }

  destroy(error?: Error): void {
    this.#below.destroy(error);
    this.wire.destroy();
  }

  #pump(): void {
    if (this.#pumping) return; // a reader that releases from within its own event
    this.#pumping = true;
    while (!this.#held && this.#step());
    this.#pumping = false;
    if (!this.#ended || this.#endSaid || this.#held || this.#queue.length > 0) return;
    this.#endSaid = true;
    if (this.#sink === null) this.wire.push(null);
    else this.#sink.end();
  }

  /** Hands on one record, or all that is there once TLS is left behind. False: there is nothing to hand on. */
  #step(): boolean {
    // TLS has not taken the previous record yet: the consumer of its plaintext could not stop the next record in time.
    if (this.#sink === null && this.wire.readableLength > 0) return false;
    const bytes = this.#sink === null ? this.#nextRecord() : this.#queue.takeSome(Infinity);
    if (bytes === null || bytes.length === 0) return false;
    if (this.#sink !== null) this.#sink.data(bytes);
    else this.wire.push(bytes);
    return true;
  }

  #nextRecord(): Buffer | null {
    const header = this.#queue.peek(HEADER_BYTES);
    if (header === null) return this.#ended ? this.#queue.takeAll() : null;
    const size = HEADER_BYTES + header.readUInt16BE(3);
    if (size > HEADER_BYTES + MAX_RECORD_BYTES) return this.#queue.takeAll();
    return this.#queue.take(size) ?? (this.#ended ? this.#queue.takeAll() : null);
  }
}

/** The stream that TLS sees. Its reading side is filled by the pump; its writing side goes straight below. */
class Wire extends Duplex {
  readonly #below: Duplex;
  /** What TLS still wants to write (tickets, close_notify) is thrown away. */
  left = false;
  readonly #wanted: () => void;
  #afterDrain: (() => void) | null = null;

  constructor(below: Duplex, wanted: () => void) {
    super({ allowHalfOpen: true });
    this.#below = below;
    this.#wanted = wanted;
    below.on("drain", () => {
      const done = this.#afterDrain;
      this.#afterDrain = null;
      done?.();
    });
  }

  override _read(): void {
    queueMicrotask(this.#wanted); // what is pushed from within _read is not delivered at once
  }

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    if (this.left || this.#below.write(bytes)) done();
    else this.#afterDrain = done;
  }

  override _final(done: () => void): void {
    if (this.left) done();
    else this.#below.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    // Raw traffic may continue below after TLS has ended.
    if (!this.left || error !== null) this.#below.destroy(error ?? undefined);
    done(error);
  }
}
