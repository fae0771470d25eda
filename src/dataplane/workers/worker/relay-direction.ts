/** One direction between two wires: reads are copied through the thread's buffer, bulk between plain sockets is spliced. */
import { performance } from "node:perf_hooks";
import { BUFFER_BYTES, EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { BACK, FAILED, MORE, OVER, WAITS, type TaskIo, type Outcome } from "./task.ts";
import { type Wire, HANDS_BACK, LONGEST_TURN_MS } from "#dataplane/workers/wire/wire.ts";
import { Splice } from "./splice.ts";
import { float64At } from "#lib/at.ts";

/** What a direction may move before the others have their turn. */
const TURN_BYTES = 4 * 1024 * 1024;
/** What a step counts for at least: a peer that sends what means nothing, or single bytes, has no longer turns. */
const STEP_BYTES = 64 * 1024;
/** A turn of more steps looks at the clock. In bulk, whose pieces are longer, each does. */
const UNTIMED_STEPS = 4;
/** A read of so much makes a direction bulk. */
const BULK_BYTES = 64 * 1024;
/** With more than this stranded, reads are small: many slow receivers shall not fill the memory. */
const MOST_STRANDED_BYTES = 32 * 1024 * 1024;
const SMALL_READ_BYTES = 16 * 1024;

const endOfTurn = (): number => performance.now() + LONGEST_TURN_MS;

export class RelayDirection {
  /** The end was passed on. */
  over = false;
  /** The errno of the write that failed; 0: none has. */
  refusal = 0;
  /** The socket that it reads from has failed: what that still holds is delivered. */
  isBroken = false;
  /** Its receiver has gone: what still comes is read and thrown away. */
  isAbandoned = false;
  readonly #from: Wire;
  readonly #to: Wire;
  readonly #count: number;
  #ended = false;
  #limited = false;
  #asking = false;
  /** While limited: granted, and not read yet. */
  #allowance = 0;
  #bulk = false;
  /** Made when the direction is bulk for the first time. */
  #splice: Splice | null = null;
  /** Read, and not taken by the receiver yet. */
  #stranded: Uint8Array | null = null;

  /** `count` is the index of its sum in `Io.counts`. */
  constructor(from: Wire, to: Wire, count: number) {
    this.#from = from;
    this.#to = to;
    this.#count = count;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Every piece is asked for, or none. */
  limit(limited: boolean): void {
    this.#limited = limited;
    this.#asking = false;
    this.#allowance = 0;
  }

  /** What was asked for may move. */
  grant(bytes: number): void {
    this.#asking = false;
    this.#allowance += bytes;
  }

  /** `isLast`: the other direction is over. */
  run(io: TaskIo, isLast: boolean): Outcome {
    if (this.over) return OVER;
    if (this.isAbandoned) return this.#discard(io, isLast);
    let untilMs = this.#bulk ? endOfTurn() : Infinity;
    for (let moved = 0, spent = 0, steps = 0; spent < TURN_BYTES; steps++) {
      if (untilMs !== Infinity && performance.now() > untilMs) return MORE;
      if (untilMs === Infinity && steps === UNTIMED_STEPS) untilMs = endOfTurn();
      if (!this.#to.writable) return WAITS;
      const bytes = this.#step(io);
      if (bytes === EAGAIN) return this.#wait(io, moved);
      if (bytes === HANDS_BACK) return BACK;
      if (bytes <= 0 && bytes !== EINTR) return bytes === 0 ? this.#end(io, isLast) : FAILED;
      moved += Math.max(0, bytes);
      spent += Math.max(STEP_BYTES, bytes);
    }
    return MORE;
  }

  /** Moves one piece one step. EAGAIN: one of the sockets is not ready. 0: the end, and all is handed on. */
  #step(io: TaskIo): number {
    if (this.#to.pending) return this.#written(this.#to.flush(io));
    if (this.#splice !== null && this.#splice.bytes > 0) return this.#handedOn(io, this.#splice.empty(io));
    if (this.#stranded !== null) return this.#retry(io, this.#stranded);
    if (this.#ended) return 0;
    if (!this.#from.readable) return EAGAIN;
    if (this.#limited && this.#allowance <= 0) return this.#ask(io);
    return this.#bulk && this.#mayFill(io) ? this.#fill(io) : this.#copy(io);
  }

  /** For what is there, so that nothing is paid for that does not come. */
  #ask(io: TaskIo): number {
    if (this.#asking) return EAGAIN;
    const bytes = this.#from.available(io);
    if (bytes === 0) this.#ended = true;
    if (bytes <= 0) return bytes;
    this.#asking = true;
    io.ask(this.#count, bytes);
    return EAGAIN;
  }

  #mayFill(io: TaskIo): boolean {
    if (this.#from.bareSource < 0 || this.#to.bareTarget < 0) return false;
    if (this.#splice === null) {
      this.#to.onBulk?.(io);
      this.#splice = new Splice(this.#from, this.#to);
    }
    return this.#splice.hasPipe(io);
  }

  #fill(io: TaskIo): number {
    const bytes = (this.#splice as Splice).fill(io, this.#cut(Infinity));
    if (bytes === 0) this.#ended = true;
    if (bytes <= 0) return bytes;
    this.#allowance -= bytes;
    return EINTR; // nothing has been handed on yet
  }

  #copy(io: TaskIo): number {
    const bytes = this.#from.read(io, this.#cut(this.#readBytes(io)));
    if (bytes >= BULK_BYTES) this.#bulk = true;
    if (bytes === 0) this.#ended = true;
    if (bytes <= 0) return bytes;
    this.#allowance -= bytes;
    const sent = this.#to.write(io, bytes);
    if (sent < bytes && (sent >= 0 || sent === EAGAIN)) this.#strand(io, Math.max(0, sent), bytes);
    return this.#handedOn(io, sent);
  }

  #cut(bytes: number): number {
    return this.#limited ? Math.min(bytes, this.#allowance) : bytes;
  }

  #readBytes({ bufferedBytes }: TaskIo): number {
    if (bufferedBytes > MOST_STRANDED_BYTES) return SMALL_READ_BYTES;
    return this.#bulk ? BUFFER_BYTES : BULK_BYTES;
  }

  #strand(io: TaskIo, from: number, to: number): void {
    this.#stranded = io.calls.buffer.slice(from, to);
    io.bufferedBytes += to - from;
  }

  #retry(io: TaskIo, stranded: Uint8Array): number {
    io.calls.buffer.set(stranded);
    const sent = this.#to.write(io, stranded.length);
    if (sent > 0) {
      io.bufferedBytes -= sent;
      this.#stranded = sent < stranded.length ? stranded.slice(sent) : null;
    }
    return this.#handedOn(io, sent);
  }

  #handedOn({ counts }: TaskIo, bytes: number): number {
    if (bytes > 0) counts[this.#count] = float64At(counts, this.#count) + bytes;
    return this.#written(bytes);
  }

  #written(bytes: number): number {
    if (bytes < 0 && bytes !== EAGAIN && bytes !== EINTR) this.refusal = bytes;
    return bytes;
  }

  #wait(io: TaskIo, moved: number): Outcome {
    if (!this.#to.writable || (this.#splice?.bytes ?? 0) > 0) return WAITS;
    this.#splice?.giveBack(io);
    if (moved < BULK_BYTES) this.#bulk = false;
    return WAITS;
  }

  #end(io: TaskIo, isLast: boolean): Outcome {
    this.#splice?.giveBack(io);
    // The close that follows says it of a bare socket.
    const said = isLast && this.#to.bareTarget >= 0 ? 0 : this.#written(this.#to.endWriting(io));
    if (said === EAGAIN) return WAITS;
    if (said < 0) return said === HANDS_BACK ? BACK : FAILED;
    this.over = true;
    return OVER;
  }

  /** Its receiver had sent everything before it closed, so the other direction continues. */
  abandon(io: TaskIo): void {
    this.drop(io);
    this.isAbandoned = true;
  }

  /**
   * A socket that is closed with something unread resets its peer, and so does one that something comes to afterwards: what
   * was on its way there would be lost. So it is over when its sender has ended, or when that one has all that it was sent.
   */
  #discard(io: TaskIo, isLast: boolean): Outcome {
    const untilMs = endOfTurn();
    for (let spent = 0; spent < TURN_BYTES && performance.now() <= untilMs; spent += STEP_BYTES) {
      const bytes = this.#from.readable ? this.#from.read(io, BUFFER_BYTES) : EAGAIN;
      if (bytes === HANDS_BACK) return BACK;
      if (bytes > 0 || bytes === EINTR) continue;
      if (bytes !== EAGAIN) this.#ended = true;
      this.over = this.#ended || (isLast && this.#hasSentAll(io));
      return this.over ? OVER : WAITS;
    }
    return MORE;
  }

  #hasSentAll({ calls }: TaskIo): boolean {
    const { fd } = this.#from;
    return fd < 0 || calls.unsent(fd) <= 0;
  }

  /** What was read and not handed on goes back to where it came from. */
  unread(): void {
    if (this.#stranded !== null) this.#from.unread?.(this.#stranded);
  }

  /** What was not handed on is thrown away. */
  drop(io: TaskIo): void {
    this.#splice?.drop(io);
    if (this.#stranded !== null) io.bufferedBytes -= this.#stranded.length;
    this.#stranded = null;
  }
}
