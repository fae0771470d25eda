import type { ClientSession } from "./client-session.ts";

export interface IdlePoolOptions {
  readonly checkIntervalMs: number;
  readonly timeoutMs: number;
  /** So many of the youngest are kept open, however long they are idle. */
  readonly minIdle: number;
}

/** Idle sessions of one server. The number of streams at one time bounds it; time-outs shrink it. */
export class IdlePool implements Disposable {
  readonly #options: IdlePoolOptions;
  /** Since when, in ms of `performance.now()`. */
  readonly #idle = new Map<ClientSession, number>();
  #timer: NodeJS.Timeout | null = null;
  #disposed = false;

  constructor(options: IdlePoolOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#idle.size;
  }

  put(session: ClientSession): void {
    if (this.#disposed) return session.close(null);
    this.#idle.set(session, performance.now());
    this.#timer ??= setInterval(() => this.check(performance.now()), this.#options.checkIntervalMs).unref();
  }

  /** The youngest; null where there is none. */
  take(): ClientSession | null {
    let youngest: ClientSession | null = null;
    for (const session of this.#idle.keys())
      if (youngest === null || session.sequence > youngest.sequence) youngest = session;
    if (youngest !== null) this.remove(youngest);
    return youngest;
  }

  remove(session: ClientSession): void {
    this.#idle.delete(session);
    if (this.#idle.size === 0) this.#stop();
  }

  /** Closes what has been idle too long. */
  check(nowMs: number): void {
    const youngestFirst = [...this.#idle].sort(([a], [b]) => b.sequence - a.sequence);
    for (const [rank, [session, sinceMs]] of youngestFirst.entries()) {
      if (nowMs - sinceMs < this.#options.timeoutMs) continue;
      if (rank < this.#options.minIdle) this.#idle.set(session, nowMs);
      else session.close(null); // which removes it
    }
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    for (const session of this.#idle.keys()) session.close(null);
    this.#stop();
  }
}
