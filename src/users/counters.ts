/** Bytes of managed users, counted where they are relayed. */
import type { Direction, Ledger, Meter } from "#core/meter.ts";

export interface Traffic {
  readonly uploadBytes: number;
  readonly downloadBytes: number;
}

/** What one user has moved since the counters were set back. */
export class UserCounter implements Traffic {
  readonly listener: string;
  readonly id: string;
  uploadBytes: number;
  downloadBytes: number;
  /** There is more than the state file has. */
  isChanged = false;
  readonly #changed: Set<UserCounter>;

  constructor(
    listener: string,
    id: string,
    { uploadBytes, downloadBytes }: Traffic,
    changed: Set<UserCounter>,
  ) {
    this.listener = listener;
    this.id = id;
    this.uploadBytes = uploadBytes;
    this.downloadBytes = downloadBytes;
    this.#changed = changed;
  }

  /** Allocates nothing. Stops at 2^53-1, where numbers stop being exact. */
  count(direction: Direction, bytes: number): void {
    if (direction === "upload")
      this.uploadBytes = Math.min(this.uploadBytes + bytes, Number.MAX_SAFE_INTEGER);
    else this.downloadBytes = Math.min(this.downloadBytes + bytes, Number.MAX_SAFE_INTEGER);
    if (this.isChanged) return;
    this.isChanged = true;
    this.#changed.add(this);
  }
}

/** The counters of the users that are managed at the moment, by listener and user. */
export class UserCounters {
  readonly #byListener = new Map<string, Map<string, UserCounter>>();
  readonly #changed = new Set<UserCounter>();

  get(listener: string, id: string): UserCounter | null {
    return this.#byListener.get(listener)?.get(id) ?? null;
  }

  /** A new counter; what is still counted for an earlier one of this user is lost, and meant to be. */
  set(listener: string, id: string, traffic: Traffic): void {
    const ofListener = this.#byListener.get(listener) ?? new Map<string, UserCounter>();
    this.#byListener.set(listener, ofListener);
    this.#forget(ofListener.get(id));
    ofListener.set(id, new UserCounter(listener, id, traffic, this.#changed));
  }

  delete(listener: string, id: string): void {
    this.#forget(this.get(listener, id) ?? undefined);
    this.#byListener.get(listener)?.delete(id);
  }

  /** Stops counting for a listener; answers with what was counted. */
  drop(listener: string): ReadonlyMap<string, Traffic> {
    const dropped = this.#byListener.get(listener) ?? new Map<string, UserCounter>();
    this.#byListener.delete(listener);
    for (const counter of dropped.values()) this.#forget(counter);
    return dropped;
  }

  /** Those that moved bytes since they were last said to be saved. */
  get changed(): ReadonlySet<UserCounter> {
    return this.#changed;
  }

  saved(counters: Iterable<UserCounter>): void {
    for (const counter of counters) this.#forget(counter);
  }

  #forget(counter: UserCounter | undefined): void {
    if (counter === undefined) return;
    counter.isChanged = false;
    this.#changed.delete(counter);
  }
}

/** Who counts for a user now; null: nobody. */
export type CounterOf = (listener: string, user: string) => UserCounter | null;

/** The same ledger, with every byte of a managed user counted as well. */
export function countUsers(inner: Ledger, counterOf: CounterOf): Ledger {
  return {
    open(metadata, decision) {
      const meter = inner.open(metadata, decision);
      const { name, user } = metadata.inbound;
      return user === null || counterOf(name, user) === null
        ? meter
        : new UserMeter(meter, counterOf, name, user);
    },
  };
}

class UserMeter implements Meter {
  readonly #inner: Meter;
  readonly #counterOf: CounterOf;
  readonly #listener: string;
  readonly #user: string;

  constructor(inner: Meter, counterOf: CounterOf, listener: string, user: string) {
    this.#inner = inner;
    this.#counterOf = counterOf;
    this.#listener = listener;
    this.#user = user;
  }

  get pieceBytes(): number {
    return this.#inner.pieceBytes;
  }

  charge(direction: Direction, bytes: number): number {
    this.#count(direction, bytes);
    return this.#inner.charge(direction, bytes);
  }

  admit(direction: Direction, bytes: number): boolean {
    const granted = this.#inner.admit(direction, bytes);
    if (granted) this.#count(direction, bytes);
    return granted;
  }

  [Symbol.dispose](): void {
    this.#inner[Symbol.dispose]();
  }

  /** Looked up each time: a reset replaces the counter, and the listener may stop being managed. */
  #count(direction: Direction, bytes: number): void {
    this.#counterOf(this.#listener, this.#user)?.count(direction, bytes);
  }
}
