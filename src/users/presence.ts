/** The open sessions of managed users and the addresses that they come from. Nothing of it is kept on disk. */
import type { Ip } from "#core/session.ts";
import type { UserLimits } from "#core/users.ts";

/** An address that has moved nothing for so long gives its place to another one, and loses its sessions. */
export const SILENT_MS = 60_000;

/** One source address of a user. Times are of a clock that never goes back. */
export class Origin {
  readonly ip: Ip;
  readonly visits = new Set<Visit>();
  seenAtMs: number;

  constructor(ip: Ip, nowMs: number) {
    this.ip = ip;
    this.seenAtMs = nowMs;
  }
}

/** One session. */
export interface Visit {
  readonly origin: Origin;
  /** Ends it as a fault would. */
  close(): void;
}

/** The sessions of one user, the oldest first. */
export class Presence {
  readonly #origins = new Map<Ip, Origin>();
  readonly #visits = new Set<Visit>();

  get origins(): readonly Origin[] {
    return [...this.#origins.values()];
  }

  get isEmpty(): boolean {
    return this.#visits.size === 0;
  }

  origin(ip: Ip): Origin | null {
    return this.#origins.get(ip) ?? null;
  }

  /** Why it may not be: a limit; null: it is entered. */
  enter(ip: Ip, close: () => void, limits: UserLimits, nowMs: number): Visit | string {
    if (limits.connections > 0 && this.#visits.size >= limits.connections)
      return `${limits.connections} connections are open, the limit`;
    const known = this.#origins.get(ip);
    if (known === undefined && limits.ips > 0 && this.#origins.size >= limits.ips && !this.#makeRoom(nowMs))
      return `${limits.ips} addresses are online, the limit`;
    const origin = known ?? new Origin(ip, nowMs);
    origin.seenAtMs = nowMs;
    this.#origins.set(ip, origin);
    const visit: Visit = { origin, close };
    origin.visits.add(visit);
    this.#visits.add(visit);
    return visit;
  }

  leave(visit: Visit): void {
    const { origin } = visit;
    this.#visits.delete(visit);
    origin.visits.delete(visit);
    if (origin.visits.size === 0 && this.#origins.get(origin.ip) === origin) this.#origins.delete(origin.ip);
  }

  /** Ends what is beyond new limits: the addresses that came last, then the sessions that came last. */
  enforce({ connections, ips }: UserLimits): void {
    if (ips > 0) for (const origin of this.origins.slice(ips)) this.#close([...origin.visits]);
    if (connections > 0) this.#close([...this.#visits].slice(connections));
  }

  #makeRoom(nowMs: number): boolean {
    const silent = this.origins.filter(({ seenAtMs }) => nowMs - seenAtMs >= SILENT_MS);
    const [longest] = silent.sort((a, b) => a.seenAtMs - b.seenAtMs);
    if (longest === undefined) return false;
    this.#close([...longest.visits]);
    return true;
  }

  #close(visits: readonly Visit[]): void {
    for (const visit of visits) {
      this.leave(visit); // its end is reported later; its slot is free now
      visit.close();
    }
  }
}

/** Of all users, by listener and id. Empty ones are forgotten. */
export class Presences {
  readonly #byUser = new Map<string, Presence>();

  get(listener: string, id: string): Presence | null {
    return this.#byUser.get(`${listener}\n${id}`) ?? null;
  }

  /** Returns a function that ends the visit; a text says why the session is refused. */
  enter(
    { listener, id }: { readonly listener: string; readonly id: string },
    from: { readonly ip: Ip; readonly close: () => void },
    limits: UserLimits,
    nowMs: number,
  ): (() => void) | string {
    const key = `${listener}\n${id}`;
    const presence = this.#byUser.get(key) ?? new Presence();
    const visit = presence.enter(from.ip, from.close, limits, nowMs);
    if (typeof visit === "string") return visit;
    this.#byUser.set(key, presence);
    return () => {
      presence.leave(visit);
      if (presence.isEmpty && this.#byUser.get(key) === presence) this.#byUser.delete(key);
    };
  }
}
