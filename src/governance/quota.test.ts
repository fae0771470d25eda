import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { widthOf } from "#lib/rolling-window.ts";
import { governed, policy, settings, TurnedClock } from "../../test/support/governed-ledger.ts";
import { runs } from "../../test/support/runs.ts";

const HOUR = 3600;
const DAY = 86_400;

/** A model that keeps every piece and adds all of them each time; its clock is never set. */
class Model {
  readonly #window: number;
  readonly #width: number;
  readonly #pieces: { readonly at: number; readonly bytes: number }[] = [];

  constructor(window: number) {
    this.#window = window;
    this.#width = widthOf(window);
  }

  usage(now: number): number {
    const live = this.#pieces.filter(({ at }) => at + this.#width > now - this.#window);
    return live.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  add(now: number, bytes: number): void {
    this.#pieces.push({ at: Math.floor(now / this.#width) * this.#width, bytes });
  }
}

const pause = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 300 }), weight: 8 },
  { arbitrary: fc.integer({ min: 0, max: 3 * DAY }), weight: 1 },
);
/** By how much the clock is set: never, or anywhere, some times ahead and back within the same second. */
const jump = fc.oneof(
  { arbitrary: fc.constant(0), weight: 2 },
  { arbitrary: fc.constantFrom(-DAY, 30 * DAY, -HOUR, HOUR, -59, 400 * DAY, -90 * DAY), weight: 1 },
  { arbitrary: fc.integer({ min: -60 * 400 * DAY, max: 60 * 400 * DAY }), weight: 1 },
);
const schedule = fc.record({
  window: fc.constantFrom(HOUR, 5 * HOUR, DAY, 30 * DAY, 365 * DAY),
  cap: fc.integer({ min: 1, max: 20_000 }),
  steps: fc.array(
    fc.record({
      pause,
      jump,
      isAsleep: fc.boolean(),
      bytes: fc.integer({ min: 0, max: 4000 }),
      what: fc.constantFrom("use", "use", "use", "look", "commit", "restart", "crash"),
    }),
    { minLength: 1, maxLength: 40 },
  ),
});

test("1,000 schedules with clocks that are set and machines that sleep: usage, over and free are those of a model that looks through everything", async () => {
  await fc.assert(
    fc.asyncProperty(schedule, async ({ window, cap, steps }) => {
      const clock = new TurnedClock();
      const quota = {
        totalBytes: cap,
        uploadBytes: 0,
        downloadBytes: 0,
        windowMs: window * 1000,
        overageUploadBps: 0,
        overageDownloadBps: 0,
      };
      const book = settings({ global: policy({ quota }) });
      const model = new Model(window);
      let core = governed(clock);
      await core.apply(book);
      let session = core.session();
      let reached = 0;
      let wasOver = false;
      const startSeconds = clock.wall / 1000;
      for (const { pause: seconds, jump: set, isAsleep, bytes, what } of steps) {
        clock.wall += (seconds + set) * 1000;
        if (isAsleep) clock.slept += seconds * 1000;
        else clock.monotonic += seconds * 1000;
        core.ledger.settle(); // as a timer does it a moment later
        const now = startSeconds + (clock.monotonic + clock.slept) / 1000;
        if (what === "restart" || what === "crash") {
          if (what === "restart") core.governance[Symbol.dispose]();
          else await core.governance.tick(); // the journal's second, then the end
          core = governed(clock, core.store);
          await core.apply(book);
          session = core.session();
        } else if (what === "commit") (await core.governance.prepare(book, { tolerant: false })).abandon();
        else if (what === "use") {
          wasOver = model.usage(now) >= cap;
          session.reserve("upload", bytes);
          model.add(now, bytes);
          if (!wasOver && model.usage(now) >= cap) reached++;
        }
        const { rolling, overQuota, freeAt, counters } =
          core.governance.status().policies[0] ?? assert.fail();
        const wanted = model.usage(now);
        assert.deepEqual([rolling.upload, overQuota, counters.exceeded], [wanted, wanted >= cap, reached]);
        if (overQuota) {
          const wait = freeAt - clock.wall / 1000;
          assert.ok(wait > 0 && wait <= window + 2 * widthOf(window), `free in ${wait}`);
        } else assert.equal(freeAt, 0);
      }
      await core.apply(null);
    }),
    { numRuns: runs(1000) },
  );
});

test("what has left the window stays away after a crash, though the clock was set back by a day meanwhile", async () => {
  const clock = new TurnedClock();
  const caps = { totalBytes: 2, uploadBytes: 0, downloadBytes: 0, windowMs: 3_600_000 };
  const book = settings({
    global: policy({ quota: { ...caps, overageUploadBps: 0, overageDownloadBps: 0 } }),
  });
  const before = governed(clock);
  await before.apply(book);
  before.session().reserve("upload", 1);
  (await before.governance.prepare(book, { tolerant: false })).abandon(); // commits
  clock.pass(3_660);
  assert.equal(before.governance.status().policies[0]?.rolling.upload, 0);
  await before.governance.tick();
  clock.wall -= 86_400_000;
  const after = governed(clock, before.store);
  await after.apply(book);
  assert.equal(after.governance.status().policies[0]?.rolling.upload, 0);
  for (const core of [before, after]) await core.apply(null);
});
