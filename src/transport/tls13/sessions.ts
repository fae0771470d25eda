/** Sessions that a server offers to resume (RFC 8446 §2.2, §4.6.1). */
import type { CipherSuite } from "./cipher-suites.ts";
import { ticketSecret } from "./key-schedule.ts";
import type { Ticket } from "./post-handshake.ts";

export interface Session {
  /** To be shown to the server; only it can read it. */
  readonly ticket: Buffer;
  /** What both sides know of it. */
  readonly secret: Buffer;
  /** Of the connection that it came from; another one is good, too, if its hash is the same. */
  readonly suite: CipherSuite;
  /** Added to its age, so that others cannot tell it. */
  readonly ageAdd: number;
  readonly sinceMs: number;
  readonly untilMs: number;
  /** DER: what the server proved to be when it was last asked. */
  readonly chain: readonly Buffer[];
}

/** Where a session comes from. */
export interface Origin {
  readonly suite: CipherSuite;
  /** The master secret for tickets. */
  readonly resumption: Buffer;
  readonly chain: readonly Buffer[];
}

/** Longer ones would make a ClientHello that no browser says. */
const MOST_TICKET_BYTES = 2048;
/** Browsers keep two for a server. */
const MOST_KEPT = 4;

/** Of one node and the name that it asks for. Each is used once, as RFC 8446 §C.4 asks; of more than four the oldest goes. */
export class Sessions {
  #kept: Session[] = [];
  readonly #nowMs: () => number;

  /** `nowMs`: Unix time. */
  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  keep({ ticket, nonce, lifetimeSeconds, ageAdd }: Ticket, { suite, resumption, chain }: Origin): void {
    if (lifetimeSeconds === 0 || ticket.length > MOST_TICKET_BYTES) return;
    const sinceMs = this.#nowMs();
    const untilMs = sinceMs + lifetimeSeconds * 1000;
    const secret = ticketSecret(suite, resumption, nonce);
    this.#kept.push({ ticket: Buffer.from(ticket), secret, suite, ageAdd, sinceMs, untilMs, chain });
    if (this.#kept.length > MOST_KEPT) this.#kept.shift();
  }

  /** The newest, which is gone then; null: there is none that is good still. */
  take(): Session | null {
    const now = this.#nowMs();
    this.#kept = this.#kept.filter(({ sinceMs, untilMs }) => now >= sinceMs && now < untilMs);
    return this.#kept.pop() ?? null;
  }

  /** The server does not get along with them. */
  clear(): void {
    this.#kept = [];
  }
}
