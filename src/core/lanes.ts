/** Who goes after whom. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { ApiError } from "./errors.ts";

/** Whoever waits in a lane holds a request open; beyond this the next one is refused. */
const MOST_WAITING = 1024;

/** Work in one lane is done piece by piece, in the order of its coming; other lanes go on meanwhile. */
export class Lanes {
  /** What work that comes now waits for, where its lane has nothing else. */
  #barrier: Promise<unknown> = Promise.resolve();
  readonly #lanes = new Map<string, Lane>();

  /** Rejects as `work` does, and with `ApiError` 503 where too many wait. */
  on<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    let lane = this.#lanes.get(name);
    if (lane === undefined) this.#lanes.set(name, (lane = { last: this.#barrier, waiting: 0 }));
    if (lane.waiting >= MOST_WAITING)
      return Promise.reject(new ApiError(503, `${MOST_WAITING} changes wait already`));
    const own = lane;
    own.waiting++;
    const done = own.last.then(work).finally(() => {
      if (--own.waiting === 0 && this.#lanes.get(name) === own) this.#lanes.delete(name);
    });
    own.last = done.catch(() => {}); // the caller has it
    return done;
  }

  /**
   * Does `work` while every lane stands still. What comes later begins in a later turn of the event loop, so that
   * whoever awaits this has the rest of the turn for themselves.
   */
  alone<T>(work: () => T | Promise<T>): Promise<T> {
    const before = [this.#barrier, ...[...this.#lanes.values()].map(({ last }) => last)];
    const done = Promise.all(before).then(work);
    this.#barrier = done.then(
      () => nextTurn(),
      () => nextTurn(),
    );
    this.#lanes.clear();
    return done;
  }
}

interface Lane {
  last: Promise<unknown>;
  waiting: number;
}
