import { endpointText, type Endpoint } from "#core/session.ts";
import type { ReplySocket } from "#core/sockets.ts";

/** Descriptors of one listener; the one that was opened first is closed for one more, and reopened when needed. */
const MAX_SOCKETS = 1024;
/** An address that the system refuses is not tried again for this long, and its replies are dropped. */
const REFUSED_MS = 5_000;

interface Entry {
  /** Null: the system refused it. */
  readonly socket: ReplySocket | null;
  readonly refusedAtMs: number;
  /** The sessions that sent by it. */
  readonly users: Set<Endpoint>;
}

/** Sockets by the address that they send from, shared by the sessions that talk to it. */
export class ReplySockets {
  readonly #open: (from: Endpoint) => ReplySocket;
  readonly #onRefused: (from: Endpoint, error: unknown) => void;
  readonly #now: () => number;
  readonly #max: number;
  readonly #entries = new Map<string, Entry>();
  readonly #used = new Map<Endpoint, Set<string>>();
  // Most replies are for the client of the one before, from the same peer.
  #lastFrom: Endpoint | null = null;
  #lastUser: Endpoint | null = null;
  #lastSocket: ReplySocket | null = null;

  /** `open` may throw; `onRefused` is called with that once in a while. */
  constructor(
    open: (from: Endpoint) => ReplySocket,
    onRefused: (from: Endpoint, error: unknown) => void,
    { now = () => performance.now(), max = MAX_SOCKETS }: { now?: () => number; max?: number } = {},
  ) {
    this.#open = open;
    this.#onRefused = onRefused;
    this.#now = now;
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * Null where the system refuses the address. `user` holds it until `release`: the client of one session, which is the
   * same object throughout. A socket that is kept longer may be closed.
   */
  get(from: Endpoint, user: Endpoint): ReplySocket | null {
    if (from === this.#lastFrom && user === this.#lastUser && this.#lastSocket !== null)
      return this.#lastSocket;
    const key = endpointText(from);
    const entry = this.#current(key) ?? this.#make(key, from);
    if (!entry.users.has(user)) {
      entry.users.add(user);
      const keys = this.#used.get(user);
      if (keys === undefined) this.#used.set(user, new Set([key]));
      else keys.add(key);
    }
    this.#lastFrom = from;
    this.#lastUser = user;
    return (this.#lastSocket = entry.socket);
  }

  /** The session is over; sockets without another user are closed. */
  release(user: Endpoint): void {
    this.#lastSocket = null;
    for (const key of this.#used.get(user) ?? []) {
      const entry = this.#entries.get(key);
      entry?.users.delete(user);
      if (entry?.users.size === 0) this.#close(key, entry);
    }
    this.#used.delete(user);
  }

  #current(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.socket !== null) return entry;
    if (this.#now() - entry.refusedAtMs < REFUSED_MS) return entry;
    this.#close(key, entry);
    return undefined;
  }

  #make(key: string, from: Endpoint): Entry {
    const [oldest] = this.#entries;
    if (oldest !== undefined && this.#entries.size >= this.#max) this.#close(...oldest);
    const entry: Entry = { socket: this.#tryOpen(from), refusedAtMs: this.#now(), users: new Set() };
    this.#entries.set(key, entry);
    return entry;
  }

  #tryOpen(from: Endpoint): ReplySocket | null {
    try {
      return this.#open(from);
    } catch (error) {
      this.#onRefused(from, error);
      return null;
    }
  }

  #close(key: string, entry: Entry): void {
    this.#lastSocket = null;
    for (const user of entry.users) this.#used.get(user)?.delete(key);
    this.#entries.delete(key);
    entry.socket?.close();
  }
}
