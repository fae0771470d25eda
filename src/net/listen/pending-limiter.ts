/** State of clients that have not authenticated yet: bounded in number and in bytes, in all and for each source. */

export interface PendingBounds {
  readonly count: number;
  /** Of memory that they hold, as each says of itself. */
  readonly bytes: number;
}

/** The share of all bounds that one source may have: it cannot displace all others. */
const SHARE_OF_ONE = 1 / 2;
/** Memory is worth giving back to the system behind a time in which so much of the bound was held, and when so little is. */
const HIGH = 1 / 4;
const LOW = 1 / 16;

interface Links {
  before: PendingEntry | null;
  behind: PendingEntry | null;
}

/** One of a crowd, until it leaves or has to give way. */
export interface PendingEntry {
  readonly source: Source;
  bytes: number;
  readonly giveWay: () => void;
  /** Among all, and among those of its source. */
  readonly all: Links;
  readonly own: Links;
  isIn: boolean;
}

type Source = string | number;

/** Entries in order of arrival. Joining and leaving costs the same however many there are. */
class Chain {
  first: PendingEntry | null = null;
  size = 0;
  bytes = 0;
  #last: PendingEntry | null = null;
  readonly #links: (one: PendingEntry) => Links;

  constructor(which: "all" | "own") {
    this.#links = which === "all" ? ({ all }) => all : ({ own }) => own;
  }

  add(one: PendingEntry): void {
    const last = this.#last;
    this.#links(one).before = last;
    if (last === null) this.first = one;
    else this.#links(last).behind = one;
    this.#last = one;
    this.size++;
    this.bytes += one.bytes;
  }

  remove(one: PendingEntry): void {
    const { before, behind } = this.#links(one);
    if (before === null) this.first = behind;
    else this.#links(before).behind = behind;
    if (behind === null) this.#last = before;
    else this.#links(behind).before = before;
    this.size--;
    this.bytes -= one.bytes;
  }

  /** The oldest one besides `one`; null: there is no other. */
  oldestBut(one: PendingEntry): PendingEntry | null {
    return this.first === one ? this.#links(one).behind : this.first;
  }
}

/** At a bound the oldest gives way: of the same source where that has more than its share, else of all. */
export class PendingLimiter {
  readonly #bounds: PendingBounds;
  readonly #boundsOfOne: PendingBounds;
  readonly #all = new Chain("all");
  readonly #sources = new Map<Source, Chain>();
  #isHigh = false;

  constructor(bounds: PendingBounds) {
    this.#bounds = bounds;
    this.#boundsOfOne = { count: bounds.count * SHARE_OF_ONE, bytes: bounds.bytes * SHARE_OF_ONE };
  }

  get size(): number {
    return this.#all.size;
  }

  get bytes(): number {
    return this.#all.bytes;
  }

  /**
   * `giveWay` is called at most once, and not by `leave`; it must not throw. The new entry itself stays; an older one
   * is displaced if necessary.
   */
  enter(source: Source, bytes: number, giveWay: () => void): PendingEntry {
    const all = { before: null, behind: null };
    const one = { source, bytes, giveWay, all, own: { before: null, behind: null }, isIn: true };
    this.#all.add(one);
    let own = this.#sources.get(source);
    if (own === undefined) this.#sources.set(source, (own = new Chain("own")));
    own.add(one);
    this.#makeRoom(one, own);
    return one;
  }

  /** It holds so much more from now on. */
  grow(one: PendingEntry, bytes: number): void {
    const own = this.#sources.get(one.source);
    if (!one.isIn || own === undefined) return;
    one.bytes += bytes;
    own.bytes += bytes;
    this.#all.bytes += bytes;
    this.#makeRoom(one, own);
  }

  /** Twice is harmless. */
  leave(one: PendingEntry): void {
    const own = this.#sources.get(one.source);
    if (!one.isIn || own === undefined) return;
    one.isIn = false;
    this.#all.remove(one);
    own.remove(one);
    if (own.size === 0) this.#sources.delete(one.source);
  }

  /** True once behind a time with many, when few are left. */
  takeSettled(): boolean {
    if (!this.#isHigh || this.bytes > this.#bounds.bytes * LOW) return false;
    this.#isHigh = false;
    return true;
  }

  #makeRoom(one: PendingEntry, own: Chain): void {
    this.#shrink(one, own, this.#boundsOfOne);
    this.#shrink(one, this.#all, this.#bounds);
    if (this.bytes > this.#bounds.bytes * HIGH) this.#isHigh = true;
  }

  #shrink(one: PendingEntry, chain: Chain, { count, bytes }: PendingBounds): void {
    while (chain.size > count || chain.bytes > bytes) {
      const oldest = chain.oldestBut(one);
      if (oldest === null) return;
      this.leave(oldest);
      oldest.giveWay();
    }
  }
}
