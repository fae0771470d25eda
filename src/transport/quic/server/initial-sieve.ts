/** Has the kernel drop most first packets while more of them come than can be answered: those of known clients find room. */
import type { SocketProgram } from "#core/sockets.ts";
import { MAX_CID_BYTES } from "#transport/quic/wire/header.ts";

/** First packets a second behind which the kernel drops some of them, and how many it is to leave. */
const MOST_A_SECOND = 8_000;
const LEFT_A_SECOND = 2_000;
/** Nothing is said of the rate before so many have come, */
const LEAST_COUNT = 400;
/** and while the kernel drops some, it is looked at so often. */
const LOOK_MS = 200;
/** One in so many is left at least: the rate could not be told from fewer. */
const LEAST_SHARE = 1 / 1024;

/** Sets the program that the kernel runs over each datagram of the socket; null: none. False: it cannot. */
export type SetProgram = (program: SocketProgram | null) => boolean;

export class InitialSieve {
  readonly #setProgram: SetProgram;
  #share = 1;
  #count = 0;
  #sinceMs = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(setProgram: SetProgram) {
    this.#setProgram = setProgram;
  }

  /** The kernel drops some: a client without a token has to fetch one, for those that have one are not dropped. */
  get isOn(): boolean {
    return this.#share < 1;
  }

  /** A first packet without a token has come. */
  count(nowMs: number): void {
    if (this.#count++ === 0 && !this.isOn) this.#sinceMs = nowMs;
    if (this.#count < LEAST_COUNT) return;
    if (this.#rate(nowMs) > MOST_A_SECOND) this.#set(LEFT_A_SECOND / this.#rate(nowMs), nowMs);
    this.#count = 0;
  }

  /** What comes in a second, with what the kernel drops of it. */
  #rate(nowMs: number): number {
    return (this.#count * 1000) / Math.max(1, nowMs - this.#sinceMs) / this.#share;
  }

  #look(nowMs: number): void {
    if (nowMs - this.#sinceMs < LOOK_MS / 2) return; // it was set a moment ago
    const rate = this.#rate(nowMs);
    this.#count = 0;
    // Floods come in bursts: behind one it leaves twice as many at each look, and is back at once with the next.
    this.#set(rate < MOST_A_SECOND ? Math.min(1, 2 * this.#share) : LEFT_A_SECOND / rate, nowMs);
  }

  #set(share: number, nowMs: number): void {
    const wanted = Math.max(LEAST_SHARE, share);
    const isSet = this.#setProgram(wanted < 1 ? dropInitials(wanted) : null);
    this.#share = isSet ? wanted : 1;
    this.#sinceMs = nowMs;
    if (this.isOn) this.#timer ??= setInterval(() => this.#look(performance.now()), LOOK_MS).unref();
    else this.close();
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}

// Classic BPF (linux/filter.h, linux/bpf_common.h); a datagram begins with eight bytes of the UDP header.
const [LOAD_WORD, LOAD_BYTE, LOAD_BYTE_AT_X, TO_X] = [0x20, 0x30, 0x50, 0x07];
const [ADD, ADD_X, AND, IF_EQUAL, IF_GREATER, RETURN] = [0x04, 0x0c, 0x54, 0x15, 0x25, 0x06];
/** SKF_AD_OFF + SKF_AD_RANDOM: loads a random word. */
const RANDOM = 0xffff_f000 + 56;
const PAYLOAD = 8;
const [DROP, KEEP] = [0, 0xffff_ffff];
/** Of the first byte: the form and the type of the packet, which are those of an Initial. */
const [KIND, INITIAL_KIND] = [0xb0, 0x80];

/** Leaves all but Initials without a token (RFC 9000 §17.2.2), and of those one by chance. `share`: below 1. */
export function dropInitials(share: number): SocketProgram {
  const threshold = Math.floor((1 - share) * 2 ** 32);
  return [
    [LOAD_WORD, 0, 0, RANDOM],
    [IF_GREATER, 12, 0, threshold],
    [LOAD_BYTE, 0, 0, PAYLOAD],
    [AND, 0, 0, KIND],
    [IF_EQUAL, 0, 9, INITIAL_KIND],
    [LOAD_BYTE, 0, 0, PAYLOAD + 5], // how long the destination's id is
    [IF_GREATER, 7, 0, MAX_CID_BYTES],
    [ADD, 0, 0, PAYLOAD + 6],
    [TO_X, 0, 0, 0],
    [LOAD_BYTE_AT_X, 0, 0, 0], // and the source's
    [ADD_X, 0, 0, 0],
    [TO_X, 0, 0, 0],
    [LOAD_BYTE_AT_X, 0, 0, 1], // and the token
    [IF_EQUAL, 1, 0, 0],
    [RETURN, 0, 0, KEEP],
    [RETURN, 0, 0, DROP],
  ];
}
