/** The addresses that a peer uses: the one in force, and how another one takes its place (RFC 9000 §8.2, §9). */
import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Endpoint } from "#core/endpoint.ts";
import { Path } from "./path.ts";

const CHALLENGE_BYTES = 8;
/** So often is an address asked whether it is the peer's, each time after so many probe timeouts. */
const TRIES = 3;
const ANSWER_PROBES = 3;
/** Of addresses besides the one in force; the oldest is forgotten. */
const MOST_OTHERS = 4;

/** What the peer has to send back. */
interface Challenge {
  readonly path: Path;
  readonly data: Uint8Array;
  readonly dueAtMs: number;
}

export class Paths {
  current: Path;
  readonly #usesEcn: boolean;
  #others: Path[] = [];
  /** Where the peer was before, and was shown to be; null: the one in force is validated. */
  #former: Path | null = null;
  #challenge: Challenge | null = null;
  /** How often the address in force was asked. */
  #tries = 0;

  /** `usesEcn`: as of `Path`. */
  constructor(first: Path, usesEcn = false) {
    this.current = first;
    this.#usesEcn = usesEcn;
  }

  /** The path of a datagram from this address; null: the dialling side has one path alone. */
  of(from: Endpoint | null): Path {
    const { current } = this;
    if (from === null || from === current.peer || isSame(from, current.peer)) return current;
    const known = [this.#former, ...this.#others].find((one) => one !== null && isSame(from, one.peer));
    if (known !== undefined && known !== null) return known;
    const made = new Path(from, false, this.#usesEcn);
    this.#others = [...this.#others.slice(1 - MOST_OTHERS), made];
    return made;
  }

  /**
   * The peer sends from there now. Another port of the same host is believed at once: its NAT has forgotten the old one, or
   * the peer hops. Answers whether it is the same host.
   */
  move(path: Path): boolean {
    const before = this.current;
    const isSameHost = before.peer?.ip === path.peer?.ip;
    if (before.isValidated) this.#former = before;
    if (isSameHost && before.isValidated) path.isValidated = true;
    if (path.isValidated) this.#former = null;
    this.#others = this.#others.filter((one) => one !== path);
    this.current = path;
    this.#challenge = null;
    this.#tries = 0;
    return isSameHost;
  }

  /** When `onTimer` is due; Infinity: never. */
  get dueAtMs(): number {
    return this.#challenge?.dueAtMs ?? Infinity;
  }

  /** What the address in force is to be asked; `probeMs`: of a probe timeout. */
  ask(nowMs: number, probeMs: number): Uint8Array {
    const data = new Uint8Array(randomBytes(CHALLENGE_BYTES));
    this.#tries++;
    this.#challenge = { path: this.current, data, dueAtMs: nowMs + ANSWER_PROBES * probeMs };
    return data;
  }

  /** An answer of the peer, wherever it came from: it has received what was sent to the address that was asked. */
  onAnswer(data: Uint8Array): void {
    const asked = this.#challenge;
    if (asked === null || data.length !== CHALLENGE_BYTES || !timingSafeEqual(asked.data, data)) return;
    asked.path.isValidated = true;
    this.#challenge = null;
    this.#former = null;
  }

  /** No answer came: `again` asks once more, `back` is at the former address again, `stay` has nothing to do. */
  onTimer(nowMs: number): "again" | "back" | "stay" {
    if (nowMs < this.dueAtMs) return "stay";
    this.#challenge = null;
    if (this.#tries < TRIES) return "again";
    if (this.#former === null) return "stay";
    this.current = this.#former;
    this.#former = null;
    return "back";
  }
}

function isSame(one: Endpoint, other: Endpoint | null): boolean {
  return one.ip === other?.ip && one.port === other.port;
}
