import { EAGAIN, EINTR, PIPE_BYTES, type Pipe } from "#platform/linux/relay-calls.ts";
import type { TaskIo } from "./task.ts";
import type { Wire } from "#dataplane/workers/wire/wire.ts";

/** One direction of bulk between two plain sockets, past this program. A pipe is kept only while there is something in it. */
export class Splice {
  readonly #from: Wire;
  readonly #to: Wire;
  #pipe: Pipe | null = null;
  #bytes = 0;

  constructor(from: Wire, to: Wire) {
    this.#from = from;
    this.#to = to;
  }

  /** Bytes that were read and not handed on. */
  get bytes(): number {
    return this.#bytes;
  }

  /** False: no pipe is to be had. */
  hasPipe({ pipes }: TaskIo): boolean {
    this.#pipe ??= pipes.take();
    return this.#pipe !== null;
  }

  /** Up to `size` bytes into the pipe; 0 at the end. */
  fill({ calls }: TaskIo, size: number): number {
    if (this.#pipe === null) return EINTR;
    const bytes = calls.splice(this.#from.bareSource, this.#pipe.writeEnd, Math.min(size, PIPE_BYTES));
    if (bytes > 0) this.#bytes = bytes;
    if (bytes === EAGAIN) this.#from.readable = false;
    return bytes;
  }

  /** How many bytes the receiver took. */
  empty({ calls }: TaskIo): number {
    if (this.#pipe === null) return EINTR;
    const bytes = calls.splice(this.#pipe.readEnd, this.#to.bareTarget, this.#bytes);
    if (bytes > 0) this.#bytes -= bytes;
    if (bytes === EAGAIN) this.#to.writable = false;
    return bytes;
  }

  giveBack({ pipes }: TaskIo): void {
    if (this.#pipe !== null) pipes.giveBack(this.#pipe);
    this.#pipe = null;
  }

  /** What was not handed on is thrown away. */
  drop(io: TaskIo): void {
    if (this.#bytes > 0 && this.#pipe !== null) io.pipes.discard(this.#pipe);
    else this.giveBack(io);
    this.#pipe = null;
  }
}
