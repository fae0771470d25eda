import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { runs } from "../../test/support/runs.ts";
import { RollingWindow, type StoredWindow, widthOf } from "./rolling-window.ts";
import { type SteadyClocks, SteadyTime, type StoredMoment } from "./steady-time.ts";

const HOUR = 3600;
const DAY = 86_400;
const START = 1_785_312_000;

/** A machine whose clock may be wrong, with a program on it that is ended and started again. */
class Machine implements SteadyClocks {
  /** Seconds of the world. */
  now = START;
  /** By how much the clock is ahead of it. */
  error = 0;
  #bootedAt = START - 100;
  #boots = 1;
  #slept = 0;
  boot = this.#bootClock();

  wallMs(): number {
    return (this.now + this.error) * 1000;
  }

  monotonicMs(): number {
    return (this.now - this.#bootedAt - this.#slept) * 1000;
  }

  sleep(seconds: number): void {
    this.now += seconds;
    this.#slept += seconds;
  }

  /** `hasClock`: it goes on while the machine is off; otherwise it begins with 1970. */
  reboot(offSeconds: number, hasClock: boolean): void {
    this.now += offSeconds;
    this.#bootedAt = this.now - 20;
    this.#slept = 0;
    this.#boots++;
    this.error = hasClock ? 0 : -this.now + 20;
    this.boot = this.#bootClock();
  }

  #bootClock() {
    return { id: `boot ${this.#boots}`, nowMs: () => (this.now - this.#bootedAt) * 1000 };
  }
}

interface Stored {
  readonly moment: StoredMoment;
  readonly rows: StoredWindow;
}

const span = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 2 * DAY }));
const step = fc.oneof(
  fc.record({ what: fc.constantFrom("use", "pass", "sleep", "crash", "write"), span }),
  fc.record({ what: fc.constantFrom("reboot", "reboot into 1970"), span }),
  fc.record({
    what: fc.constant("set ahead"),
    span: fc.oneof(fc.integer({ min: 1, max: DAY }), fc.integer({ min: 1, max: 80 * 365 * DAY })),
  }),
  fc.record({ what: fc.constantFrom("set right", "set to 1970"), span: fc.constant(0) }),
);

test("whatever the clock is set to, usage is never lower than it is, through sleep, crashes and reboots; and it leaves", () => {
  fc.assert(
    fc.property(fc.constantFrom(HOUR, DAY), fc.array(step, { maxLength: 60 }), (windowSeconds, steps) => {
      const machine = new Machine();
      let time = new SteadyTime(machine);
      let window = new RollingWindow(windowSeconds);
      /** Of the world; what is stored is kept apart from what a crash loses. */
      let used: readonly { readonly at: number; readonly bytes: number }[] = [];
      let kept = used;
      let stored: Stored | null = null;
      const write = () => {
        stored = { moment: time.moment(), rows: window.store() };
        kept = used;
      };
      const start = () => {
        time = new SteadyTime(machine);
        if (stored !== null) time.goOnFrom(stored.moment);
        window = new RollingWindow(windowSeconds, stored?.rows);
        used = kept;
        if (time.isOfLaterRun) write();
      };
      for (const { what, span: seconds } of steps) {
        if (what === "use") {
          window.add(time.nowSeconds(), 1000, 0);
          used = [...used, { at: machine.now, bytes: 1000 }];
        } else if (what === "pass") machine.now += seconds;
        else if (what === "sleep") machine.sleep(seconds);
        else if (what === "write") write();
        else if (what === "set ahead") machine.error = seconds;
        else if (what === "set right") machine.error = 0;
        else if (what === "set to 1970") machine.error = -machine.now;
        else {
          if (what === "crash") machine.now += seconds;
          else machine.reboot(seconds, what === "reboot");
          start();
        }
        time.look();
        window.expire(time.nowSeconds());
        const live = used.filter(({ at }) => at > machine.now - windowSeconds);
        const wanted = live.reduce((sum, { bytes }) => sum + bytes, 0);
        assert.ok(window.upload >= wanted, `${window.upload} of ${wanted} after ${what}`);
      }
      machine.now += windowSeconds + 2 * widthOf(windowSeconds);
      window.expire(time.nowSeconds());
      assert.equal(window.upload, 0);
    }),
    { numRuns: runs(2000) },
  );
});

test("a machine that was off for an hour, and knows it, has let an hour pass", () => {
  const machine = new Machine();
  const before = new SteadyTime(machine);
  const moment = before.moment();
  machine.reboot(HOUR, true);
  const after = new SteadyTime(machine);
  after.goOnFrom(moment);
  assert.equal(after.nowSeconds(), START + HOUR);
});

test("rows from the future, as earlier versions wrote them, are gone on from", () => {
  const machine = new Machine();
  const time = new SteadyTime(machine);
  time.goOnBehind(START + DAY);
  assert.equal(time.nowSeconds(), START + DAY);
  assert.equal(time.wallSecondsAt(START + DAY + 60), START + 60);
});
