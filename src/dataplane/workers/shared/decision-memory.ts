/**
 * What workers have decided by themselves, by slot, in the memory that accepting workers share with the main thread; see
 * decision-data.ts for what they decide by.
 */
import { SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { byteAt, int32At, itemAt } from "#lib/at.ts";
import { MOST_NAME_BYTES } from "#lib/name-table.ts";

/**
 * `origin` is an index of `ADDRESS_ORIGINS`; `faked` 1: its client has asked for a fake address; `user` an index of the
 * listener's users, negative: it is none's.
 */
export type DecisionRow = readonly [
  version: number,
  type: number,
  target: number,
  list: number,
  position: number,
  end: number,
  origin: number,
  faked: number,
  user: number,
];

/** Of a `DecisionRow`, one a value. */
const ROW_WORDS = 9;
/** What it dials, the listening side's own, what its client wants, and the fake one that it has asked for. */
const SOCKADDRS = 4;
// LENGTH(1) NAME(n)
const NAME_BYTES = 1 + MOST_NAME_BYTES;
/** Of each slot. */
export const DECISION_BYTES = 8 + (1 + ROW_WORDS) * 4 + SOCKADDRS * SOCKADDR_BYTES + NAME_BYTES;

export class DecisionMemory {
  /**
   * Of each slot: who accounts for a connection that the worker has decided; see `decision-data.ts`. The worker writes
   * `CONNECTED`; the side that changes that, the worker at the connection's end or the main thread to `JOINED`, has it.
   */
  readonly decided: Int32Array;
  /** Of those: since when they are connected, in ms of Unix time. */
  readonly startedAtMs: Float64Array;
  readonly #rows: Int32Array;
  readonly #destinations: Uint8Array;
  readonly #locals: Uint8Array;
  readonly #wanted: Uint8Array;
  readonly #faked: Uint8Array;
  readonly #names: Buffer;

  /** `at`, a multiple of eight, is where the `DECISION_BYTES` of all slots begin. */
  constructor(memory: SharedArrayBuffer, at: number, slots: number) {
    this.startedAtMs = new Float64Array(memory, at, slots);
    const wordsAt = at + slots * 8;
    this.decided = new Int32Array(memory, wordsAt, slots);
    this.#rows = new Int32Array(memory, wordsAt + slots * 4, slots * ROW_WORDS);
    const bytesAt = wordsAt + slots * (1 + ROW_WORDS) * 4;
    const sockaddrs = (nth: number) =>
      new Uint8Array(memory, bytesAt + slots * nth * SOCKADDR_BYTES, slots * SOCKADDR_BYTES);
    this.#destinations = sockaddrs(0);
    this.#locals = sockaddrs(1);
    this.#wanted = sockaddrs(2);
    this.#faked = sockaddrs(3);
    const namesAt = bytesAt + slots * SOCKADDRS * SOCKADDR_BYTES;
    this.#names = Buffer.from(memory, namesAt, slots * NAME_BYTES) as Buffer;
  }

  /** A `DecisionRow`. */
  row(slot: number): Int32Array {
    return this.#rows.subarray(slot * ROW_WORDS, (slot + 1) * ROW_WORDS);
  }

  /** The version by which it was decided. */
  versionOf(slot: number): number {
    return int32At(this.#rows, slot * ROW_WORDS);
  }

  /** What was decided, and both ends of it: what is dialled, and the listening side's own socket address. */
  write(slot: number, row: DecisionRow, to: Uint8Array, local: Uint8Array): void {
    const at = slot * ROW_WORDS;
    for (let word = 0; word < ROW_WORDS; word++) this.#rows[at + word] = itemAt(row, word);
    this.#destinations.set(to, slot * SOCKADDR_BYTES);
    this.#wanted.set(to, slot * SOCKADDR_BYTES);
    this.#locals.set(local, slot * SOCKADDR_BYTES);
  }

  /** Behind `write`, where something else than what its client wants is dialled. */
  setWanted(slot: number, to: Uint8Array): void {
    this.#wanted.set(to, slot * SOCKADDR_BYTES);
  }

  /** Behind `write`, where the row says so: the socket address that its client has asked for. */
  setFaked(slot: number, to: Uint8Array): void {
    this.#faked.set(to, slot * SOCKADDR_BYTES);
  }

  /** As `setFaked` has written it. */
  faked(slot: number): Uint8Array {
    return ofSlot(this.#faked, slot);
  }

  /** The socket address that its client wants, or the port alone where it has asked for a name that none was needed of. */
  wanted(slot: number): Uint8Array {
    return ofSlot(this.#wanted, slot);
  }

  /** The socket address that it has dialled. */
  destination(slot: number): Uint8Array {
    return ofSlot(this.#destinations, slot);
  }

  /** The listening side's own socket address of it. */
  local(slot: number): Uint8Array {
    return ofSlot(this.#locals, slot);
  }

  /** The name that its client has asked for, or means by a fake address; ASCII. */
  nameOf(slot: number): string {
    const at = slot * NAME_BYTES;
    return this.#names.toString("latin1", at + 1, at + 1 + byteAt(this.#names, at));
  }

  /** Throws `RangeError` for one that no table of names has. */
  setName(slot: number, name: string): void {
    if (name.length > MOST_NAME_BYTES) throw new RangeError(`a name of ${name.length} bytes`);
    const at = slot * NAME_BYTES;
    this.#names[at] = name.length;
    this.#names.write(name, at + 1, "latin1");
  }
}

function ofSlot(sockaddrs: Uint8Array, slot: number): Uint8Array {
  return sockaddrs.subarray(slot * SOCKADDR_BYTES, (slot + 1) * SOCKADDR_BYTES);
}
