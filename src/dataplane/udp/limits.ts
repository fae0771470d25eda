import type { Datagram, Ip } from "#core/session.ts";
import { WaitingDatagrams } from "#net/udp/waiting-datagrams.ts";

export interface DatagramLimits {
  readonly sessions: number;
  readonly sessionsPerSource: number;
  readonly branches: number;
  readonly branchesPerSession: number;
  /** Destinations of one session that are remembered; the one longest known goes first. */
  readonly destinationsPerSession: number;
  /** Of all datagrams that wait for a decision or a dial: payloads, and `KEPT_BYTES` each. */
  readonly queuedBytes: number;
}

const DEFAULT_LIMITS: DatagramLimits = {
  sessions: 8192,
  sessionsPerSource: 1024,
  branches: 16_384,
  branchesPerSession: 64,
  destinationsPerSession: 1024,
  queuedBytes: 16 << 20,
};

/** What all datagram sessions of a core share. At a bound a datagram is dropped, a new session refused. */
export class DatagramBudget {
  readonly limits: DatagramLimits;
  #sessions = 0;
  #branches = 0;
  #queuedBytes = 0;
  readonly #perSource = new Map<Ip, number>();

  constructor(limits: Partial<DatagramLimits> = {}) {
    this.limits = { ...DEFAULT_LIMITS, ...limits };
  }

  enter(source: Ip): boolean {
    const own = this.#perSource.get(source) ?? 0;
    if (this.#sessions >= this.limits.sessions || own >= this.limits.sessionsPerSource) return false;
    this.#sessions++;
    this.#perSource.set(source, own + 1);
    return true;
  }

  leave(source: Ip): void {
    const own = this.#perSource.get(source) ?? 0;
    this.#sessions--;
    if (own > 1) this.#perSource.set(source, own - 1);
    else this.#perSource.delete(source);
  }

  takeBranch(): boolean {
    if (this.#branches >= this.limits.branches) return false;
    this.#branches++;
    return true;
  }

  releaseBranch(): void {
    this.#branches--;
  }

  queue(bytes: number): boolean {
    if (this.#queuedBytes + bytes > this.limits.queuedBytes) return false;
    this.#queuedBytes += bytes;
    return true;
  }

  unqueue(bytes: number): void {
    this.#queuedBytes -= bytes;
  }
}

/** What keeping one costs besides its payload. */
export const KEPT_BYTES = 256;

/** Datagrams that wait for a decision or a dial. */
export class DatagramQueue {
  readonly #budget: DatagramBudget;
  readonly #waiting = new WaitingDatagrams();

  constructor(budget: DatagramBudget) {
    this.#budget = budget;
  }

  push(item: Datagram): void {
    const bytes = KEPT_BYTES + item.payload.length;
    if (this.#budget.queue(bytes) && !this.#waiting.push(item)) this.#budget.unqueue(bytes);
  }

  /** Empties it. */
  take(): readonly Datagram[] {
    const items = this.#waiting.take();
    for (const { payload } of items) this.#budget.unqueue(KEPT_BYTES + payload.length);
    return items;
  }
}
