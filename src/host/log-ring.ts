import type { LogEvent } from "#core/log.ts";

/** Beyond either bound the oldest lines go; both are reached by busy programs only. */
const MOST_LINES = 1_000;
const MOST_CHARACTERS = 1024 * 1024;

/** The last lines of the log, so that a page that is opened later shows what was said before. A push allocates nothing. */
export class LogRing {
  readonly #events: (LogEvent | null)[] = Array.from({ length: MOST_LINES }, () => null);
  #first = 0;
  #size = 0;
  #characters = 0;

  push(event: LogEvent): void {
    if (this.#size === MOST_LINES) this.#drop();
    this.#events[(this.#first + this.#size++) % MOST_LINES] = event;
    this.#characters += event.text.length;
    while (this.#characters > MOST_CHARACTERS && this.#size > 1) this.#drop();
  }

  /** The newest `count` for which `wanted` holds, the oldest of them first. */
  last(count: number, wanted: (event: LogEvent) => boolean): readonly LogEvent[] {
    const found: LogEvent[] = [];
    for (let at = this.#size - 1; at >= 0 && found.length < count; at--) {
      const event = this.#events[(this.#first + at) % MOST_LINES] ?? null;
      if (event !== null && wanted(event)) found.push(event);
    }
    return found.reverse();
  }

  #drop(): void {
    this.#characters -= this.#events[this.#first]?.text.length ?? 0;
    this.#events[this.#first] = null;
    this.#first = (this.#first + 1) % MOST_LINES;
    this.#size--;
  }
}
