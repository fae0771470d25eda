/**
 * Events on their way to the medium and what is kept of them there. An event is numbered when it is written; one that is
 * written has a delivery for each webhook that wants it in the same commit, so a crash loses neither or both.
 */
import type { EventDraft, EventFeed, WeirEvent } from "#core/events.ts";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Change } from "#store/kv.ts";
import type { AsyncStore, StoredRecords } from "#store/opened-store.ts";
import { EVENTS, HEADS, keyOf, MARKS } from "./parts.ts";

/** Events that a client which was away can still have. */
const RING = 4096;
/** Beyond it events are lost, and their number is reported once the medium takes some again. */
const MOST_PENDING = 8192;
const MOST_IN_COMMIT = 256;
/** Events that come together are written together. */
const GATHER_MS = 20;
const FIRST_RETRY_MS = 250;
const MOST_RETRY_MS = 30_000;
/** Subjects whose last report is remembered; beyond it the one marked longest ago goes. */
const MOST_MARKS = 50_000;
const HEAD_KEY = "events";

export interface StoredEvents {
  readonly events: StoredRecords;
  readonly marks: StoredRecords;
  readonly heads: StoredRecords;
}

/** Who holds events beyond the ring, and keeps something of each new one. */
export interface EventKeeper {
  /** Records that go into the commit of these events. */
  plan(events: readonly WeirEvent[]): readonly Change[];
  /** They are on the medium. */
  planned(events: readonly WeirEvent[]): void;
  /** Is this event waited for, however old it is? */
  holds(seq: number): boolean;
}

export interface EventLogEnv {
  readonly log: Log;
  /** Unix time. */
  readonly nowMs: () => number;
}

interface Pending {
  readonly draft: EventDraft;
  readonly atMs: number;
  /** What it marks; value null: the mark goes. */
  readonly mark: readonly [key: string, value: string | null] | null;
  readonly written: () => void;
}

const NOTHING = (): void => {};

export class EventLog implements EventFeed, Disposable {
  readonly #store: Pick<AsyncStore, "commit">;
  readonly #env: EventLogEnv;
  readonly #keeper: EventKeeper;
  readonly #watchers = new Set<(event: WeirEvent) => void>();
  readonly #pending: Pending[] = [];
  /** By number: the ring, and older ones that the keeper holds. */
  #events = new Map<number, WeirEvent>();
  #marks = new Map<string, string>();
  #last = 0;
  /** How many reports have come, and how many of them are on the medium. */
  #reported = 0;
  #written = 0;
  /** Until so many are written. */
  #waiters: { readonly until: number; readonly resolve: () => void }[] = [];
  #lost = 0;
  #failures = 0;
  #timer: NodeJS.Timeout | null = null;
  #isWriting = false;
  #isOver = false;

  constructor(
    store: Pick<AsyncStore, "commit">,
    records: StoredEvents,
    keeper: EventKeeper,
    env: EventLogEnv,
  ) {
    this.#store = store;
    this.#keeper = keeper;
    this.#env = env;
    this.adopt(records);
  }

  /** Goes by what the file holds. What is pending stays so: an event may then be there twice, and none is missing. */
  adopt({ events, marks, heads }: StoredEvents): void {
    this.#events = new Map(events.map(([key, value]) => [Number(key), readEvent(value)]));
    this.#marks = new Map(marks.map(([key, value]) => [key, value.toString()]));
    for (const { mark } of this.#pending) if (mark !== null) this.#setMark(...mark);
    const head = heads.find(([key]) => key === HEAD_KEY)?.[1];
    this.#last = head === undefined ? 0 : Number(head.toString());
  }

  /** Null: nothing was reported yet. */
  markOf(key: string): string | null {
    return this.#marks.get(key) ?? null;
  }

  /** `mark` counts from now on. `written` is called when it is on the medium. */
  emit(draft: EventDraft, mark: Pending["mark"] = null, written: () => void = NOTHING): void {
    if (this.#isOver) return;
    if (this.#pending.length >= MOST_PENDING) return void this.#lost++;
    if (mark !== null) this.#setMark(...mark);
    this.#reported++;
    this.#pending.push({ draft, mark, written, atMs: Math.trunc(this.#env.nowMs()) });
    this.#writeIn(GATHER_MS);
  }

  /** Writes what has been reported so far without gathering more; settles when it is on the medium, or that takes nothing. */
  settled(): Promise<void> {
    if (this.#written >= this.#reported || this.#isOver || this.#failures > 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push({ until: this.#reported, resolve });
    if (this.#timer !== null && this.#failures === 0) {
      clearTimeout(this.#timer);
      void this.#write();
    }
    return promise;
  }

  event(seq: number): WeirEvent | null {
    return this.#events.get(seq) ?? null;
  }

  since(seq: number | null): ReturnType<EventFeed["since"]> {
    if (seq === null || seq >= this.#last) return { events: [], isCut: seq !== null && seq > this.#last };
    const first = Math.max(seq + 1, this.#last - RING + 1);
    const events: WeirEvent[] = [];
    for (let at = first; at <= this.#last; at++) {
      const event = this.#events.get(at);
      if (event !== undefined) events.push(event);
    }
    // What is still on its way to the medium has a number already, and comes to watchers.
    const oldest = events[0]?.seq ?? seq + 1;
    return { events, isCut: oldest > seq + 1 };
  }

  watch(on: (event: WeirEvent) => void): Disposable {
    this.#watchers.add(on);
    return { [Symbol.dispose]: () => void this.#watchers.delete(on) };
  }

  /** Hands what is pending to the store, which is about to be closed. */
  flush(): void {
    this.#isWriting = false;
    while (this.#pending.length > 0) void this.#commit().catch(NOTHING);
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#watchers.clear();
    for (const { resolve } of this.#waiters.splice(0)) resolve();
  }

  #setMark(key: string, value: string | null): void {
    this.#marks.delete(key); // the newest is the last one
    if (value !== null) this.#marks.set(key, value);
  }

  #writeIn(delayMs: number): void {
    if (this.#timer !== null || this.#isWriting) return;
    this.#timer = setTimeout(() => void this.#write(), delayMs).unref();
  }

  async #write(): Promise<void> {
    this.#timer = null;
    this.#isWriting = true;
    try {
      while (this.#pending.length > 0 && !this.#isOver) await this.#commit();
      this.#failures = 0;
    } catch (error) {
      for (const { resolve } of this.#waiters.splice(0)) resolve(); // the change is made, its answer need not wait
      if (this.#failures++ === 0) this.#env.log.warning(`events wait to be written: ${messageOf(error)}`);
    } finally {
      this.#isWriting = false;
    }
    if (this.#pending.length > 0 && !this.#isOver)
      this.#writeIn(Math.min(MOST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#failures));
  }

  /** Rejects with everything pending as it was. */
  async #commit(): Promise<void> {
    this.#noteLost();
    const batch = this.#pending.splice(0, MOST_IN_COMMIT);
    const from = this.#last;
    const events = batch.map(({ draft, atMs }, at): WeirEvent => ({ ...draft, seq: from + at + 1, atMs }));
    this.#last = from + events.length; // a flush commits the next ones before this one has settled
    const old = this.#outOfRing();
    const marks = [...new Map(batch.flatMap(({ mark }) => (mark === null ? [] : [mark])))];
    const gone = this.#surplusMarks();
    const changes: readonly Change[] = [
      ...events.map((event) => ({ part: EVENTS, key: keyOf(event.seq), value: writeEvent(event) })),
      ...old.map((seq) => ({ part: EVENTS, key: keyOf(seq), value: null })),
      ...marks.map(([key, value]) => ({
        part: MARKS,
        key,
        value: value === null ? null : Buffer.from(value),
      })),
      ...gone.map((key) => ({ part: MARKS, key, value: null })),
      ...this.#keeper.plan(events),
      { part: HEADS, key: HEAD_KEY, value: Buffer.from(String(this.#last)) },
    ];
    try {
      await this.#store.commit(changes, { backup: true });
    } catch (error) {
      this.#last = Math.min(this.#last, from);
      this.#pending.unshift(...batch);
      throw error;
    }
    for (const seq of old) this.#events.delete(seq);
    for (const event of events) this.#events.set(event.seq, event);
    this.#written += batch.length;
    for (const { until, resolve } of this.#waiters) if (until <= this.#written) resolve();
    this.#waiters = this.#waiters.filter(({ until }) => until > this.#written);
    this.#keeper.planned(events);
    for (const { written } of batch) written();
    for (const event of events) for (const on of this.#watchers) on(event);
  }

  #noteLost(): void {
    if (this.#lost === 0) return;
    const data = { count: this.#lost };
    this.#lost = 0;
    this.#reported++;
    this.#pending.push({
      draft: { type: "events.lost", subject: "events", data },
      mark: null,
      written: NOTHING,
      atMs: Math.trunc(this.#env.nowMs()),
    });
  }

  /** The map has them in the order of their numbers. */
  #outOfRing(): readonly number[] {
    const old: number[] = [];
    for (const seq of this.#events.keys()) {
      if (seq > this.#last - RING) break;
      if (!this.#keeper.holds(seq)) old.push(seq);
    }
    return old;
  }

  #surplusMarks(): readonly string[] {
    const gone: string[] = [];
    for (const key of this.#marks.keys()) {
      if (this.#marks.size - gone.length <= MOST_MARKS) break;
      gone.push(key);
    }
    for (const key of gone) this.#marks.delete(key);
    return gone;
  }
}

interface StoredEvent {
  readonly seq: number;
  readonly at: number;
  readonly type: WeirEvent["type"];
  readonly subject: string;
  readonly data: WeirEvent["data"];
}

function writeEvent({ seq, atMs, type, subject, data }: WeirEvent): Buffer {
  const stored: StoredEvent = { seq, at: atMs, type, subject, data };
  return Buffer.from(JSON.stringify(stored));
}

function readEvent(value: Buffer): WeirEvent {
  const { at, ...event }: StoredEvent = JSON.parse(value.toString());
  return { ...event, atMs: at };
}
