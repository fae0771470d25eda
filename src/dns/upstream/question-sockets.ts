/**
 * Questions that have a socket of their own, bounded: where descriptors are few, those of questions that have no answer must
 * leave some to connections. At the bound the question that has waited longest gives way: beside a flood of slow ones that is
 * hardly ever an honest one, because those are answered quickly.
 */
import { DialError } from "#core/errors.ts";
import { PassingMap } from "#lib/passing-map.ts";

/** Where nothing is known of descriptors. */
const MOST_SOCKETS = 4096;

export class QuestionSockets {
  readonly #most: number;
  /** In the order in which they came. */
  readonly #asking = new PassingMap<number, AbortController>();
  #last = 0;

  constructor(most = MOST_SOCKETS) {
    this.#most = Math.min(most, MOST_SOCKETS);
  }

  /** `ask` is given a signal that aborts with `signal`, or where its socket is to be closed for another one's sake. */
  async use<T>(signal: AbortSignal, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const stop = new AbortController();
    const onAbort = (): void => stop.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    if (this.#asking.size >= this.#most) this.#endOldest();
    const number = ++this.#last;
    this.#asking.set(number, stop);
    try {
      return await ask(stop.signal);
    } finally {
      this.#asking.delete(number);
      signal.removeEventListener("abort", onAbort);
    }
  }

  #endOldest(): void {
    const [oldest = 0] = this.#asking.keys();
    const stop = this.#asking.get(oldest);
    this.#asking.delete(oldest);
    stop?.abort(new DialError("failed", "too many DNS questions at once"));
  }
}
