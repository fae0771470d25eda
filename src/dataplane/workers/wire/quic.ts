/** A stream of a QUIC connection that this thread has: no socket of its own, and said to be ready by the connection. */
import { EAGAIN, EPIPE, FAULT, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import type { ThreadStream } from "#transport/quic/remote/thread-stream.ts";
import { Readiness } from "./readiness.ts";
import type { Wire, WireIo } from "./wire.ts";

const ECONNRESET = -104;

/** Those of the thread. */
export interface QuicStreams {
  /** As `ThreadEndpoints.lend`. */
  lend(numbers: (at: number) => number): ThreadStream | null;
  /** Of the wire at an index: epoll(7) bits. */
  readonly onReady: (index: number, events: number) => void;
}

export class QuicWire extends Readiness implements Wire {
  readonly pending = false;
  readonly fd = -1;
  readonly #stream: ThreadStream;

  /** Null: the stream is gone, or this thread has none. */
  static open(streams: QuicStreams | null, index: number, numbers: (at: number) => number): QuicWire | null {
    const stream = streams?.lend(numbers) ?? null;
    if (streams === null || stream === null) return null;
    stream.callbacks = {
      onReadable: () => streams.onReady(index, READABLE),
      onWritable: () => streams.onReady(index, WRITABLE),
      onFault: () => streams.onReady(index, FAULT),
    };
    return new QuicWire(stream);
  }

  constructor(stream: ThreadStream) {
    super();
    this.#stream = stream;
  }

  read({ calls }: WireIo, size: number): number {
    const bytes = this.#stream.read(calls.buffer, size);
    return bytes > 0 ? bytes : this.#nothing();
  }

  /** Nothing waits: the end, a fault, or not yet. */
  #nothing(): number {
    if (this.#stream.hasEnded) return 0;
    if (this.#stream.hasFailed) return ECONNRESET;
    this.readable = false;
    return EAGAIN;
  }

  available(): number {
    return this.#stream.waitingBytes || this.#nothing();
  }

  write({ calls }: WireIo, size: number): number {
    if (this.#stream.isOver) return EPIPE;
    if (!this.#stream.hasRoom) {
      this.writable = false;
      return EAGAIN;
    }
    this.#stream.put(calls.buffer.subarray(0, size));
    this.writable = this.#stream.hasRoom;
    return size;
  }

  flush(): number {
    return EAGAIN;
  }

  endWriting(): number {
    this.#stream.endPutting();
    return 0;
  }

  drop(): void {
    this.#stream.drop();
  }
}
