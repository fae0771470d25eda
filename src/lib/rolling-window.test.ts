import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { runs } from "../../test/support/runs.ts";
import { RollingWindow, widthOf } from "./rolling-window.ts";

const HOUR = 3600;
const DAY = 86_400;

test("widths and numbers of buckets are those of the specification", () => {
  const rows = [
    [HOUR, 60, 61],
    [DAY, 84, 1030],
    [7 * DAY, 591, 1025],
    [30 * DAY, 2531, 1026],
    [365 * DAY, 30_797, 1025],
  ] as const;
  for (const [window, width, most] of rows) {
    assert.equal(widthOf(window), width);
    const rolling = new RollingWindow(window);
    for (let at = 0; at < 3 * window; at += width / 2) {
      rolling.add(Math.floor(at), 1, 0);
      assert.ok(rolling.size <= most, `${rolling.size} buckets in a window of ${window} s`);
    }
  }
});

/** Everything that was ever added, looked through each time. */
class Model {
  readonly #window: number;
  readonly #added: (readonly [start: number, upload: number, download: number])[] = [];
  constructor(window: number) {
    this.#window = window;
  }
  add(now: number, upload: number, download: number): void {
    const width = widthOf(this.#window);
    this.#added.push([Math.floor(now / width) * width, upload, download]);
  }
  sum(now: number): readonly [number, number] {
    const live = this.#added.filter(([start]) => start + widthOf(this.#window) > now - this.#window);
    return [live.reduce((sum, row) => sum + row[1], 0), live.reduce((sum, row) => sum + row[2], 0)];
  }
}

test("running sums equal a model that looks through everything, 1,000 schedules with long pauses", () => {
  const step = fc.tuple(
    fc.oneof(
      { arbitrary: fc.integer({ min: 0, max: 200 }), weight: 8 },
      { arbitrary: fc.integer({ min: 0, max: 40 * DAY }), weight: 1 },
    ),
    fc.integer({ min: 0, max: 1e9 }),
    fc.integer({ min: 0, max: 1e9 }),
  );
  const schedule = fc.tuple(
    fc.constantFrom(HOUR, 5 * HOUR, DAY, 30 * DAY),
    fc.array(step, { minLength: 1, maxLength: 60 }),
  );
  fc.assert(
    fc.property(schedule, ([window, steps]) => {
      const rolling = new RollingWindow(window);
      const model = new Model(window);
      let now = 1_785_312_000;
      for (const [pause, upload, download] of steps) {
        now += pause;
        rolling.add(now, upload, download);
        model.add(now, upload, download);
        assert.deepEqual([rolling.upload, rolling.download], model.sum(now));
      }
      const loaded = new RollingWindow(window, rolling.store());
      assert.deepEqual([loaded.upload, loaded.download], model.sum(now));
      rolling.expire(now + window + widthOf(window));
      assert.deepEqual([rolling.upload, rolling.download], [0, 0]);
    }),
    { numRuns: runs(1000) },
  );
});
