/**
 * What threads have to know at the moment: how dest is reached, what time it is, and what dest sends to those who have finished a
 * handshake. The main thread writes it; a reader that meets it while it does has nothing.
 */
import { float64At, int32At } from "#lib/at.ts";
import { SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";

/** An address is good for so long: then the main thread has to dial first. */
const VALID_MS = 5_000;
/** The main thread writes it anew behind so long. */
const FRESH_MS = 1_000;

/** Kinds of ALPN in a hello: none, HTTP/1.1, h2 in front. */
export const ALPN_KINDS = [null, "http/1.1", "h2"] as const;
/** Records behind a handshake that are imitated at most. */
const MOST_LATER = 32;

// Words:  SEQUENCE ADDRESS_LENGTH MARK TIMEOUT IDLE INTERVAL, then of each name and kind of ALPN: COUNT LENGTHS(32)
const SEQUENCE = 0;
const PLAN = 1;
const PLAN_WORDS = 5;
const LATER = PLAN + PLAN_WORDS;
const LATER_WORDS = 1 + MOST_LATER;
/** The name of an interface has fewer. */
export const DEVICE_BYTES = 16;
// Times, in front of the words: WRITTEN_AT (monotonic) UNIX_TIME, in ms; behind the words: ADDRESS(28) DEVICE(16)
const TIMES_BYTES = 16;
/** A writer that is met is done by then. */
const MOST_TRIES = 64;

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

export class DestBoard {
  readonly memory: SharedArrayBuffer;
  readonly #times: Float64Array;
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;

  private constructor(memory: SharedArrayBuffer, names: number) {
    const words = wordsOf(names);
    this.memory = memory;
    this.#times = new Float64Array(memory, 0, TIMES_BYTES / 8);
    this.#words = new Int32Array(memory, TIMES_BYTES, words);
    this.#bytes = new Uint8Array(memory, TIMES_BYTES + words * 4, SOCKADDR_BYTES + DEVICE_BYTES);
  }

  /** Nothing is known yet. `names`: how many the listener has. */
  static make(names: number): DestBoard {
    const bytes = TIMES_BYTES + wordsOf(names) * 4 + SOCKADDR_BYTES + DEVICE_BYTES;
    return new DestBoard(new SharedArrayBuffer(bytes), names);
  }

  static of(memory: SharedArrayBuffer, names: number): DestBoard {
    return new DestBoard(memory, names);
  }

  // Of the main thread.

  /** It is to be written anew. */
  get isStale(): boolean {
    return monotonicMs() - float64At(this.#times, 0) > FRESH_MS;
  }

  /** `dial` null: dest is the main thread's to reach. */
  writeDial(dial: DestDial | null, nowMs: number): void {
    this.#write(() => {
      this.#times[0] = monotonicMs();
      this.#times[1] = nowMs;
      this.#words[PLAN] = dial?.address.length ?? 0;
      if (dial === null) return;
      this.#words.set([dial.mark | 0, dial.timeoutMs, dial.idleSeconds, dial.intervalSeconds], PLAN + 1);
      this.#bytes.fill(0).set(dial.address);
      this.#bytes.set(dial.device, SOCKADDR_BYTES);
    });
  }

  /** `name`: its index; `alpn`: that in `ALPN_KINDS`. */
  writeLater(name: number, alpn: number, lengths: readonly number[]): void {
    this.#write(() => {
      const some = lengths.slice(0, MOST_LATER);
      this.#words.set([some.length, ...some], laterAt(name, alpn));
    });
  }

  #write(change: () => void): void {
    Atomics.add(this.#words, SEQUENCE, 1);
    change();
    Atomics.add(this.#words, SEQUENCE, 1);
  }

  // Of the others.

  /** Null: the main thread has to dial. */
  dial(): DestDial | null {
    return this.#read(() => {
      const length = int32At(this.#words, PLAN);
      if (length === 0 || monotonicMs() - float64At(this.#times, 0) > VALID_MS) return null;
      const word = (at: number): number => int32At(this.#words, PLAN + at);
      const device = this.#bytes.slice(SOCKADDR_BYTES);
      return {
        address: this.#bytes.slice(0, length),
        mark: word(1),
        timeoutMs: word(2),
        idleSeconds: word(3),
        intervalSeconds: word(4),
        device: device.subarray(0, device.indexOf(0)),
      };
    });
  }

  /** Unix time, as the main thread has it; NaN: it is not known. */
  nowMs(): number {
    const passedMs = (): number => monotonicMs() - float64At(this.#times, 0);
    return this.#read(() => float64At(this.#times, 1) + passedMs()) ?? Number.NaN;
  }

  /** Of records with their headers. */
  later(name: number, alpn: number): readonly number[] {
    const at = laterAt(name, alpn);
    const row = (): readonly number[] => [...this.#words.subarray(at, at + LATER_WORDS)];
    const [count = 0, ...lengths] = this.#read(row) ?? [];
    return lengths.slice(0, count);
  }

  #read<Value>(look: () => Value): Value | null {
    for (let left = MOST_TRIES; left > 0; left--) {
      const before = Atomics.load(this.#words, SEQUENCE);
      if ((before & 1) !== 0) continue;
      const value = look();
      if (Atomics.load(this.#words, SEQUENCE) === before) return value;
    }
    return null;
  }
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
