/** Tickets: what a client may come back with, once for each fresh secret. In memory of the process. */
import { randomBytes, randomInt } from "node:crypto";

export const TICKET_BYTES = 16;
/** With one more the oldest is dropped: its client makes a full handshake. */
const MOST_TICKETS = 65_536;
/** Of one ticket; with one more it is unknown. */
const MOST_USES = 4096;

interface Issued {
  readonly pfsKey: Buffer;
  readonly expiresAtMs: number;
  /** Secrets that have come with it: the same pair again is a replay. */
  readonly secrets: Set<string>;
}

/** Of all servers of one process: a ticket is of use only together with a secret that the server's own key makes. */
export class TicketBook {
  readonly #nowMs: () => number;
  /** In the order of issue. */
  readonly #issued = new Map<string, Issued>();

  /** `nowMs`: any clock that does not jump. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** The first two bytes are its life in seconds; one of 0 s is not kept. */
  issue(pfsKey: Buffer, { from, to }: { readonly from: number; readonly to: number }): Buffer {
    const ticket = randomBytes(TICKET_BYTES);
    const seconds = randomInt(from, to + 1);
    ticket.writeUInt16BE(seconds);
    if (seconds === 0) return ticket;
    this.#forget();
    const expiresAtMs = this.#nowMs() + seconds * 1000;
    this.#issued.set(ticket.toString("latin1"), { pfsKey, expiresAtMs, secrets: new Set() });
    return ticket;
  }

  /** The secret of the first handshake. Null: nothing is known of the ticket; `replayed`: it has come with this secret before. */
  redeem(ticket: Buffer, secret: Buffer): Buffer | "replayed" | null {
    const issued = this.#issued.get(ticket.toString("latin1"));
    if (issued === undefined || issued.expiresAtMs <= this.#nowMs()) return null;
    const text = secret.toString("latin1");
    if (issued.secrets.has(text)) return "replayed";
    if (issued.secrets.size >= MOST_USES) return null;
    issued.secrets.add(text);
    return issued.pfsKey;
  }

  /** From the oldest on: lives differ, so one that has expired may stay a while behind one that has not. */
  #forget(): void {
    const nowMs = this.#nowMs();
    for (const [text, { expiresAtMs }] of this.#issued) {
      if (expiresAtMs > nowMs && this.#issued.size < MOST_TICKETS) return;
      this.#issued.delete(text);
    }
  }
}
