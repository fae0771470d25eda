/** The open sessions of managed users and the addresses that they come from. Nothing of it is kept on disk. */
import type { Ip } from "#core/session.ts";
import type { UserLimits } from "#core/users.ts";

/** An address that has moved nothing for so long gives its place to another one, and loses its sessions. */
export const SILENT_MS = 60_000;

/** What a user has open on other nodes of a fleet, as it was told last. */
export interface Elsewhere {
  readonly ips: ReadonlySet<Ip>;
  readonly connections: number;
  /** After which it counts no more. Of a clock that never goes back. */
  readonly untilMs: number;
}

/** What the nodes of a fleet together leave to this one. */
export interface Correction {
  /** Addresses beyond the limit. */
  readonly refused: readonly Ip[];
  /** Null: any number. */
  readonly connections: number | null;
}

export interface UserKey {
  readonly listener: string;
  readonly id: string;
}

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

  get size(): number {
    return this.#visits.size;
  }

  get isEmpty(): boolean {
    return this.#visits.size === 0;
  }

  origin(ip: Ip): Origin | null {
    return this.#origins.get(ip) ?? null;
  }

  /** Why it may not be: a limit; null: it is entered. */
  enter(
    ip: Ip,
    close: () => void,
    limits: UserLimits,
    { nowMs, elsewhere }: { readonly nowMs: number; readonly elsewhere: Elsewhere | null },
  ): Visit | string {
    const { connections: others = 0 } = elsewhere ?? {};
    if (limits.connections > 0 && this.#visits.size + others >= limits.connections)
      return `${limits.connections} connections are open, the limit`;
    const known = this.#origins.get(ip);
    if (known === undefined && this.#isFull(ip, limits, elsewhere) && !this.#makeRoom(nowMs))
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

  /** Ends what other nodes of a fleet leave no room for: these addresses, then the sessions that came last. */
  correct({ refused, connections }: Correction): void {
    for (const ip of refused) this.#close([...(this.#origins.get(ip)?.visits ?? [])]);
    if (connections !== null) this.#close([...this.#visits].slice(connections));
  }

  #isFull(ip: Ip, { ips }: UserLimits, elsewhere: Elsewhere | null): boolean {
    if (ips === 0) return false;
    if (elsewhere === null) return this.#origins.size >= ips;
    return !elsewhere.ips.has(ip) && elsewhere.ips.union(this.#origins).size >= ips;
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
  readonly #elsewhere = new Map<string, Elsewhere>();
  /** A session of a user with such a limit has come, gone, or was refused. */
  onLimited: (user: UserKey) => void = () => {};

  get(listener: string, id: string): Presence | null {
    return this.#byUser.get(`${listener}\n${id}`) ?? null;
  }

  /** Users with sessions. */
  *all(): Iterable<UserKey & { readonly presence: Presence }> {
    for (const [key, presence] of this.#byUser) yield { ...userOf(key), presence };
  }

  /** What other nodes of a fleet have of a user. */
  tell({ listener, id }: UserKey, elsewhere: Elsewhere): void {
    this.#elsewhere.set(`${listener}\n${id}`, elsewhere);
  }

  /** Drops what counts no more. */
  forget(nowMs: number): void {
    for (const [key, { untilMs }] of this.#elsewhere) if (untilMs <= nowMs) this.#elsewhere.delete(key);
  }

  /** Returns a function that ends the visit; a text says why the session is refused. */
  enter(
    user: UserKey,
    from: { readonly ip: Ip; readonly close: () => void },
    limits: UserLimits,
    nowMs: number,
  ): (() => void) | string {
    const key = `${user.listener}\n${user.id}`;
    const presence = this.#byUser.get(key) ?? new Presence();
    const told = this.#elsewhere.get(key) ?? null;
    const elsewhere = told !== null && told.untilMs > nowMs ? told : null;
    const isLimited = limits.connections > 0 || limits.ips > 0;
    const visit = presence.enter(from.ip, from.close, limits, { nowMs, elsewhere });
    if (isLimited) this.onLimited(user);
    if (typeof visit === "string") return visit;
    this.#byUser.set(key, presence);
    return () => {
      presence.leave(visit);
      if (presence.isEmpty && this.#byUser.get(key) === presence) this.#byUser.delete(key);
      if (isLimited) this.onLimited(user);
    };
  }
}

function userOf(key: string): UserKey {
  const at = key.lastIndexOf("\n");
  return { listener: key.slice(0, at), id: key.slice(at + 1) };
}
