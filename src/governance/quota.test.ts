import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { widthOf } from "#lib/rolling-window.ts";
import { governed, policy, settings, TurnedClock } from "../../test/support/governed-ledger.ts";

const HOUR = 3600;
const DAY = 86_400;

/**
 * Every piece that was ever counted, looked through each time. Where the clock is set back by a bucket or more, all that
 * is known goes back with it; what has left the window once is gone.
 */
class Model {
  readonly #window: number;
  readonly #width: number;
  #pieces: { at: number; bytes: number }[] = [];

  constructor(window: number) {
    this.#window = window;
    this.#width = widthOf(window);
  }

  usage(now: number): number {
    const behind = Math.floor((this.#newest() - now) / this.#width);
    if (behind >= 1) for (const piece of this.#pieces) piece.at -= behind * this.#width;
    this.#pieces = this.#pieces.filter(({ at }) => at + this.#width > now - this.#window);
    return this.#pieces.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  add(now: number, bytes: number): void {
    this.usage(now);
    this.#pieces.push({ at: Math.max(Math.floor(now / this.#width) * this.#width, this.#newest()), bytes });
  }

  #newest(): number {
    return this.#pieces.reduce((newest, { at }) => Math.max(newest, at), -Infinity);
  }
}

const pause = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 300 }), weight: 8 },
  { arbitrary: fc.integer({ min: 0, max: 3 * DAY }), weight: 1 },
  // the clock is set: a day back, a month ahead, an hour either way as a wrong change to and from summer time
  { arbitrary: fc.constantFrom(-DAY, 30 * DAY, -HOUR, HOUR, -59, 400 * DAY, -90 * DAY), weight: 2 },
);
const schedule = fc.record({
  window: fc.constantFrom(HOUR, 5 * HOUR, DAY, 30 * DAY, 365 * DAY),
  cap: fc.integer({ min: 1, max: 20_000 }),
  steps: fc.array(
    fc.record({
      pause,
      bytes: fc.integer({ min: 0, max: 4000 }),
      what: fc.constantFrom("use", "use", "use", "look", "commit", "restart", "crash"),
    }),
    { minLength: 1, maxLength: 40 },
  ),
});

test("1,000 schedules with clocks that are set: usage, over and free are those of a model that looks through everything", async () => {
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
      for (const { pause: seconds, bytes, what } of steps) {
        clock.wall += seconds * 1000;
        clock.monotonic += Math.max(0, seconds) * 1000;
        const now = clock.wall / 1000;
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
          assert.ok(freeAt > now && freeAt <= now + window + 2 * widthOf(window), `free at ${freeAt - now}`);
        } else assert.equal(freeAt, 0);
      }
      await core.apply(null);
    }),
    { numRuns: 1000 },
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
