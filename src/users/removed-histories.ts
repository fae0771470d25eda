/** What users moved who have been removed: kept for a while, as reports keep what belongs to no policy any more. */
import type { UserHistory } from "./history.ts";

export interface RemovedHistory {
  readonly listener: string;
  /** Unix ms. */
  readonly removedAtMs: number;
  readonly history: UserHistory;
}

/** One more, and those removed longest ago go first. */
const MOST_REMOVED = 10_000;

export class RemovedHistories {
  /** By the user's id, those removed longest ago first. */
  readonly #kept: Map<string, RemovedHistory>;
  /** Rows of the file that the next write takes away. */
  readonly #doomed: Set<string>;

  constructor(kept: Iterable<readonly [id: string, removed: RemovedHistory]>, doomed: Iterable<string>) {
    this.#kept = new Map([...kept].sort(([, a], [, b]) => a.removedAtMs - b.removedAtMs));
    this.#doomed = new Set(doomed);
  }

  find(id: string): RemovedHistory | null {
    return this.#kept.get(id) ?? null;
  }

  add(id: string, removed: RemovedHistory): void {
    this.#kept.set(id, removed);
    if (this.#kept.size > MOST_REMOVED) this.#doomOldest();
  }

  /** The user is there again. */
  takeOut(id: string): void {
    this.#kept.delete(id);
    this.#doomed.delete(id);
  }

  /** Drops those that were removed before. Looks at no others. */
  expire(borderMs: number): void {
    for (const { removedAtMs } of this.#kept.values()) {
      if (removedAtMs >= borderMs) return;
      this.#doomOldest();
    }
  }

  get doomed(): ReadonlySet<string> {
    return this.#doomed;
  }

  /** The rows are gone. */
  forget(ids: Iterable<string>): void {
    for (const id of ids) this.#doomed.delete(id);
  }

  #doomOldest(): void {
    const [oldest] = this.#kept.keys();
    if (oldest === undefined) return;
    this.#kept.delete(oldest);
    this.#doomed.add(oldest);
  }
}
