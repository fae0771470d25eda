/** Brings what a book says into the planes: one publication at a time, only what changed, the newest state always. */
import type { Log } from "#core/log.ts";
import { messageOf } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import type { LearnedBook, Verdict } from "./learned-book.ts";
import type { Changes, Plane } from "./plane.ts";

export class Publisher {
  readonly #book: LearnedBook;
  /** In this order: an address is removed from the first plane before the second is told. */
  readonly #planes: readonly Plane[];
  readonly #log: Log;
  readonly #published = new Map<Ip, Verdict>();
  /** The end of the last publication that was begun or waits. */
  #tail: Promise<void> = Promise.resolve();
  /** The one that waits for its turn and will take everything with it. */
  #next: Promise<void> | null = null;
  /** Planes whose content is unknown since a write failed. */
  readonly #broken = new Set<Plane>();
  #unfinished = 0;

  constructor(book: LearnedBook, planes: readonly Plane[], log: Log) {
    this.#book = book;
    this.#planes = planes;
    this.#log = log;
  }

  /** Does the kernel have what the book says? */
  get isDone(): boolean {
    return this.#unfinished === 0 && this.#broken.size === 0 && !this.#book.hasTouched;
  }

  /** Settles when the kernel has what the book says now; never rejects, a failure is logged and repaired by the next. */
  publish(): Promise<void> {
    this.#next ??= this.#tail = this.#queue();
    return this.#next;
  }

  async #queue(): Promise<void> {
    this.#unfinished++;
    await this.#tail;
    this.#next = null;
    await this.#push();
    this.#unfinished--;
  }

  async #push(): Promise<void> {
    const changes = this.#takeChanges();
    for (const plane of this.#planes) await this.#pushTo(plane, changes);
  }

  /** One that fails keeps nothing from the others: what must not be DIRECT any more is to be so nowhere. */
  async #pushTo(plane: Plane, changes: Changes | null): Promise<void> {
    try {
      if (this.#broken.has(plane)) await plane.replace(this.#all("direct"), this.#all("proxy"));
      else if (changes !== null) await plane.apply(changes);
      this.#broken.delete(plane);
    } catch (error) {
      this.#broken.add(plane);
      this.#log.warning(`kernel-direct: the kernel's sets could not be written: ${messageOf(error)}`);
    }
  }

  /** Null: what was published is still true. */
  #takeChanges(): Changes | null {
    const changes: {
      readonly [side in Verdict]: { readonly add: Ip[]; readonly remove: Ip[] };
    } = { direct: { add: [], remove: [] }, proxy: { add: [], remove: [] } };
    let any = false;
    for (const ip of this.#book.takeTouched()) {
      const was = this.#published.get(ip) ?? null;
      const is = this.#book.verdict(ip);
      if (was === is) continue;
      any = true;
      if (was !== null) changes[was].remove.push(ip);
      if (is === null) this.#published.delete(ip);
      else {
        changes[is].add.push(ip);
        this.#published.set(ip, is);
      }
    }
    return any ? changes : null;
  }

  #all(verdict: Verdict): readonly Ip[] {
    return [...this.#published].filter(([, is]) => is === verdict).map(([ip]) => ip);
  }
}
