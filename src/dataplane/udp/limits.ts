import type { Datagram, Ip } from "#core/session.ts";
import { SILENT_MS } from "#net/udp/udp-clients.ts";
import { WaitingDatagrams } from "#net/udp/waiting-datagrams.ts";
import { sourceKey } from "#net/listen/unauthenticated-clients.ts";
import { Holders } from "./holders.ts";
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
  /** Who opened it; absent or null: it is its source's. */
  readonly user?: string | null;
  /** When a datagram last came or went, by the clock of the idle timers. */
  readonly usedAtMs: number;
  expire(): void;
}

/** At the bound of all, who holds so many times what another would have with one more gives way to that, silent or not. */
const UNFAIR = 2;

/** A user has as many addresses as it likes. */
function holderOf({ source, user = null }: Occupant): string {
  return user === null ? `at ${sourceKey(source)}` : `by ${user}`;
}

/**
 * What all datagram sessions of a core share. At a bound a datagram is dropped; one more session takes the place of the one
 * that was silent the longest: of its source, or of all, where no other user or source holds less. Else one who holds much more
 * gives way, so that none can keep the others out.
 */
export class DatagramBudget {
  readonly limits: DatagramLimits;
  readonly #sessions = new SilenceLine<Occupant>();
  #branches = 0;
  #queuedBytes = 0;
  readonly #perSource = new Holders<Occupant>();
  readonly #perHolder = new Holders<Occupant>();

  constructor(limits: Partial<DatagramLimits> = {}) {
    this.limits = { ...DEFAULT_LIMITS, ...limits };
  }

  /** False: there is no room for it. */
  enter(session: Occupant, nowMs: number): boolean {
    const { source } = session;
    const atSource = this.#perSource.of(source);
    if (atSource.size >= this.limits.sessionsPerSource && !this.#displace(atSource, nowMs)) return false;
    if (this.#sessions.size >= this.limits.sessions && !this.#makeRoom(session, nowMs)) return false;
    this.#sessions.add(session);
    this.#perSource.add(source, session);
    this.#perHolder.add(holderOf(session), session);
    return true;
  }

  /** Nothing where it has left already. */
  leave(session: Occupant): void {
    if (!this.#sessions.delete(session)) return;
    this.#perSource.delete(session.source, session);
    this.#perHolder.delete(holderOf(session), session);
  }

  #makeRoom(session: Occupant, nowMs: number): boolean {
    const own = this.#perHolder.of(holderOf(session));
    const { largest } = this.#perHolder;
    if (largest === null || own.size >= largest.size) return this.#displace(own, nowMs);
    if (this.#displace(this.#sessions, nowMs)) return true;
    return largest.size > UNFAIR * (own.size + 1) && this.#displace(largest, Infinity);
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
