/**
 * What threads have to know at the moment: how dest is reached, what time it is, and what dest sends to those who have finished a
 * handshake. The main thread writes it, twice: while it writes one copy the other one is read, however long it stands still there.
 */
import { float64At, int32At } from "#lib/at.ts";
import { SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";

/** An address is good for so long: then the main thread has to dial first. */
const VALID_MS = 5_000;

/** Kinds of ALPN in a hello: none, HTTP/1.1, h2 in front. */
export const ALPN_KINDS = [null, "http/1.1", "h2"] as const;
/** Records behind a handshake that are imitated at most. */
const MOST_LATER = 32;

// A copy: times WRITTEN_AT (monotonic) UNIX_TIME, in ms; words ADDRESS_LENGTH MARK TIMEOUT IDLE INTERVAL, then of each name
// and kind of ALPN COUNT LENGTHS(32); bytes ADDRESS(28) DEVICE(16)
const PLAN = 0;
const PLAN_WORDS = 5;
const LATER = PLAN + PLAN_WORDS;
const LATER_WORDS = 1 + MOST_LATER;
/** The name of an interface has fewer. */
export const DEVICE_BYTES = 16;
const TIMES_BYTES = 16;
/** In front of both copies: how many copies were ever begun. */
const SEQUENCE_BYTES = 8;

/** As `Dial` of the workers has it. */
export interface DestDial {
  readonly address: Uint8Array;
  readonly mark: number;
  readonly timeoutMs: number;
  readonly idleSeconds: number;
  readonly intervalSeconds: number;
  readonly device: Uint8Array;
}

/** Of all threads of this process. */
function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}

class Copy {
  readonly times: Float64Array;
  readonly words: Int32Array;
  readonly bytes: Uint8Array;

  constructor(memory: SharedArrayBuffer, from: number, names: number) {
    const words = wordsOf(names);
    this.times = new Float64Array(memory, from, TIMES_BYTES / 8);
    this.words = new Int32Array(memory, from + TIMES_BYTES, words);
    this.bytes = new Uint8Array(memory, from + TIMES_BYTES + words * 4, SOCKADDR_BYTES + DEVICE_BYTES);
  }
}

export class DestBoard {
  readonly memory: SharedArrayBuffer;
  readonly #sequence: Int32Array;
  /** The first one is read while the sequence is even. */
  readonly #copies: readonly [Copy, Copy];

  private constructor(memory: SharedArrayBuffer, names: number) {
    const behind = SEQUENCE_BYTES + copyBytes(names);
    this.memory = memory;
    this.#sequence = new Int32Array(memory, 0, 1);
    this.#copies = [new Copy(memory, SEQUENCE_BYTES, names), new Copy(memory, behind, names)];
  }

  /** Nothing is known yet. `names`: how many the listener has. */
  static make(names: number): DestBoard {
    return new DestBoard(new SharedArrayBuffer(SEQUENCE_BYTES + 2 * copyBytes(names)), names);
  }

  static of(memory: SharedArrayBuffer, names: number): DestBoard {
    return new DestBoard(memory, names);
  }

  // Of the main thread.

  /** `dial` null: dest is the main thread's to reach. */
  writeDial(dial: DestDial | null, nowMs: number): void {
    const writtenAtMs = monotonicMs();
    this.#write(({ times, words, bytes }) => {
      times.set([writtenAtMs, nowMs]);
      words[PLAN] = dial?.address.length ?? 0;
      if (dial === null) return;
      words.set([dial.mark | 0, dial.timeoutMs, dial.idleSeconds, dial.intervalSeconds], PLAN + 1);
      bytes.fill(0).set(dial.address);
      bytes.set(dial.device, SOCKADDR_BYTES);
    });
  }

  /** `name`: its index; `alpn`: that in `ALPN_KINDS`. */
  writeLater(name: number, alpn: number, lengths: readonly number[]): void {
    const some = lengths.slice(0, MOST_LATER);
    this.#write(({ words }) => words.set([some.length, ...some], laterAt(name, alpn)));
  }

  #write(change: (copy: Copy) => void): void {
    for (const copy of this.#copies) {
      Atomics.add(this.#sequence, 0, 1); // who reads it goes to the other one
      change(copy);
    }
  }

  // Of the others.

  /** Null: the main thread has to dial. */
  dial(): DestDial | null {
    return this.#read(({ times, words, bytes }) => {
      const length = int32At(words, PLAN);
      if (length === 0 || monotonicMs() - float64At(times, 0) > VALID_MS) return null;
      const word = (at: number): number => int32At(words, PLAN + at);
      const device = bytes.slice(SOCKADDR_BYTES);
      return {
        address: bytes.slice(0, length),
        mark: word(1),
        timeoutMs: word(2),
        idleSeconds: word(3),
        intervalSeconds: word(4),
        device: device.subarray(0, device.indexOf(0)),
      };
    });
  }

  /** Unix time, as the main thread has it; once it has written how dest is reached. */
  nowMs(): number {
    return this.#read(({ times }) => float64At(times, 1) + monotonicMs() - float64At(times, 0));
  }

  /** Of records with their headers. */
  later(name: number, alpn: number): readonly number[] {
    const at = laterAt(name, alpn);
    const [count = 0, ...lengths] = this.#read(({ words }) => [...words.subarray(at, at + LATER_WORDS)]);
    return lengths.slice(0, count);
  }

  /** Again only where another copy was begun meanwhile. */
  #read<Value>(look: (copy: Copy) => Value): Value {
    for (;;) {
      const before = Atomics.load(this.#sequence, 0);
      const value = look(this.#copies[(before & 1) as 0 | 1]);
      if (Atomics.load(this.#sequence, 0) === before) return value;
    }
  }
}

/** The times of what follows it are whole words of their own. */
function copyBytes(names: number): number {
  return Math.ceil((TIMES_BYTES + wordsOf(names) * 4 + SOCKADDR_BYTES + DEVICE_BYTES) / 8) * 8;
}

function wordsOf(names: number): number {
  return LATER + names * ALPN_KINDS.length * LATER_WORDS;
}

function laterAt(name: number, alpn: number): number {
  return LATER + (name * ALPN_KINDS.length + alpn) * LATER_WORDS;
}

/** The index in `ALPN_KINDS` of what a hello offers, the preferred one first. */
export function alpnKind(protocols: readonly string[]): number {
  if (protocols[0] === "h2") return 2;
  return protocols.length === 0 ? 0 : 1;
}
