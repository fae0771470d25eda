/** The clock of `performance`, which goes on by itself, and by what it is moved. */
import { mock } from "node:test";

export interface MovableClock extends Disposable {
  move(ms: number): void;
}

export function movableClock(): MovableClock {
  const real = performance.now.bind(performance);
  let aheadMs = 0;
  const { mock: context } = mock.method(performance, "now", () => real() + aheadMs);
  return {
    move: (ms) => void (aheadMs += ms),
    [Symbol.dispose]: () => context.restore(),
  };
}
