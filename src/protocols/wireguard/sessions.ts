import type { Session } from "./session.ts";

/** The keys of one peer: those in use, those before, which what is on its way still has, and those that come. */
export class Sessions {
  readonly #onEnd: (session: Session) => void;
  #current: Session | null = null;
  #previous: Session | null = null;
  /** Answered by us, and not yet used by the other side. */
  #next: Session | null = null;

  /** `onEnd`: its index is free. */
  constructor(onEnd: (session: Session) => void) {
    this.#onEnd = onEnd;
  }

  get current(): Session | null {
    return this.#current;
  }

  /** By the index that messages name. */
  find(index: number): Session | null {
    for (const session of [this.#current, this.#previous, this.#next])
      if (session?.localIndex === index) return session;
    return null;
  }

  isNext(session: Session): boolean {
    return session === this.#next;
  }

  /** In use when the other side has used it. */
  offer(session: Session): void {
    this.#end(this.#next);
    this.#next = session;
  }

  use(session: Session): void {
    if (session === this.#next) this.#next = null;
    this.#end(this.#previous);
    this.#previous = this.#current;
    this.#current = session;
  }

  forget(): void {
    for (const session of [this.#current, this.#previous, this.#next]) this.#end(session);
    this.#current = this.#previous = this.#next = null;
  }

  #end(session: Session | null): void {
    if (session === null) return;
    this.#onEnd(session);
    session[Symbol.dispose]();
  }
}
