import type { Datagram, Ip } from "#core/session.ts";
import { SILENT_MS } from "#net/udp/udp-clients.ts";
import { WaitingDatagrams } from "#net/udp/waiting-datagrams.ts";
import { SilenceLine } from "./silence-line.ts";

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

/** A session as the bounds know it. */
export interface Occupant {
  readonly source: Ip;
  /** When a datagram last came or went, by the clock of the idle timers. */
  readonly usedAtMs: number;
  expire(): void;
}

/**
 * What all datagram sessions of a core share. At a bound a datagram is dropped; one more session takes the place of the one
 * that was silent the longest, of its source or of all.
 */
export class DatagramBudget {
  readonly limits: DatagramLimits;
  readonly #sessions = new SilenceLine<Occupant>();
  #branches = 0;
  #queuedBytes = 0;
  readonly #perSource = new Map<Ip, SilenceLine<Occupant>>();

  constructor(limits: Partial<DatagramLimits> = {}) {
    this.limits = { ...DEFAULT_LIMITS, ...limits };
  }

  /** False: there is no room for it. */
  enter(session: Occupant, nowMs: number): boolean {
    const { source } = session;
    const own = this.#perSource.get(source) ?? new SilenceLine();
    if (own.size >= this.limits.sessionsPerSource && !this.#displace(own, nowMs)) return false;
    if (this.#sessions.size >= this.limits.sessions && !this.#displace(this.#sessions, nowMs)) return false;
    own.add(session);
    this.#sessions.add(session);
    this.#perSource.set(source, own);
    return true;
  }

  /** Nothing where it has left already. */
  leave(session: Occupant): void {
    if (!this.#sessions.delete(session)) return;
    const own = this.#perSource.get(session.source);
    own?.delete(session);
    if (own?.size === 0) this.#perSource.delete(session.source);
  }

  #displace(line: SilenceLine<Occupant>, nowMs: number): boolean {
    const session = line.longestSilent();
    if (session === null || nowMs - session.usedAtMs < SILENT_MS) return false;
    this.leave(session);
    session.expire();
    return true;
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
