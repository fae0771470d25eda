import { Store } from "./store.ts";

export interface Notice {
  readonly id: number;
  readonly kind: "done" | "failed";
  readonly text: string;
}

/** More are not read at once; older ones are dropped. */
const MAX_NOTICES = 3;
const LIFETIME_MS = { done: 4_000, failed: 10_000 };

/** Short messages about what a person has just asked for. */
export class Notices {
  readonly shown = new Store<readonly Notice[]>([]);
  /** The lists that could show them, in the order in which they came onto the page. */
  readonly lists = new Store<readonly symbol[]>([]);
  #last = 0;

  say(kind: Notice["kind"], text: string): void {
    const notice = { id: ++this.#last, kind, text };
    this.shown.set([...this.shown.value, notice].slice(-MAX_NOTICES));
    setTimeout(() => this.drop(notice.id), LIFETIME_MS[kind]);
  }

  drop(id: number): void {
    this.shown.set(this.shown.value.filter((notice) => notice.id !== id));
  }
}
