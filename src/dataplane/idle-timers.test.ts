import assert from "node:assert/strict";
import { test } from "node:test";
import { IdleTimers } from "./idle-timers.ts";
import type { IdleEntry, IdleTimersClock } from "./idle-timers.ts";

class FakeClock implements IdleTimersClock {
  nowMs = 1_000;
  tick: (() => void) | null = null;
  now = (): number => this.nowMs;
  every(_: number, on: () => void): Disposable {
    this.tick = on;
    return { [Symbol.dispose]: () => void (this.tick = null) };
  }
  advance(ms: number): void {
    this.nowMs += ms;
    this.tick?.();
  }
}

function idle(idleMs: number): IdleEntry & { expired: number } {
  const made = { activeAtMs: 0, idleMs, expired: 0, expire: () => void made.expired++ };
  return made;
}

test("what is silent for too long expires, once, and with the last one the timer stops", () => {
  const clock = new FakeClock();
  const timers = new IdleTimers(clock);
  const [short, long, never] = [idle(2_000), idle(5_000), idle(Infinity)];
  for (const each of [short, long, never]) timers.add(each);
  clock.advance(1_999);
  assert.equal(short.expired, 0);
  clock.advance(1);
  assert.equal(short.expired, 1);
  long.activeAtMs = timers.nowMs;
  clock.advance(4_000);
  assert.equal(long.expired, 0, "activity counts");
  clock.advance(1_000);
  assert.deepEqual([short.expired, long.expired, never.expired], [1, 1, 0]);
  assert.notEqual(clock.tick, null);
  timers.remove(never);
  assert.equal(clock.tick, null);
});

test("a slow entry has a timer of its own", () => {
  const clock = new FakeClock();
  const asked: number[] = [];
  const every = (ms: number, on: () => void): Disposable => (asked.push(ms), clock.every(ms, on));
  const { slow } = new IdleTimers({ now: clock.now, every });
  const one = idle(60_000);
  slow.add(one);
  assert.deepEqual(asked, [5_000]);
  clock.nowMs += 4_000;
  one.activeAtMs = slow.exactMs;
  clock.advance(59_000);
  assert.equal(one.expired, 0, "not sooner after what it has done");
  clock.advance(1_000);
  assert.equal(one.expired, 1);
  assert.equal(clock.tick, null);
});

test("a sweep that rested does not expire what comes next", () => {
  const clock = new FakeClock();
  const timers = new IdleTimers(clock);
  clock.nowMs += 1_000_000;
  const one = idle(2_000);
  timers.add(one);
  clock.advance(1_000);
  assert.equal(one.expired, 0);
  timers.remove(one);
});

test("an entry added between two walks has all of its time", () => {
  const clock = new FakeClock();
  const { slow } = new IdleTimers(clock);
  slow.add(idle(Infinity));
  clock.nowMs += 4_900;
  const late = idle(8_000);
  slow.add(late);
  clock.advance(100);
  clock.advance(5_000);
  assert.equal(late.expired, 0, "5.1 s are no 8 s");
  clock.advance(5_000);
  assert.equal(late.expired, 1);
});

test("a walk that comes late leaves what was not read meanwhile to the next one", () => {
  const clock = new FakeClock();
  const timers = new IdleTimers(clock);
  const [waiting, silent] = [idle(60_000), idle(60_000)];
  timers.add(waiting);
  timers.add(silent);
  clock.advance(1_000);
  clock.advance(68_000); // the event loop has stood still: bytes for one of them wait in its socket
  assert.deepEqual([waiting.expired, silent.expired], [0, 0]);
  waiting.activeAtMs = timers.nowMs; // they are read behind the timers
  clock.advance(1_000);
  assert.deepEqual([waiting.expired, silent.expired], [0, 1]);
  clock.advance(60_000);
  clock.advance(1_000);
  assert.equal(waiting.expired, 1);
});

test("a loop that is always late does not keep anything for ever", () => {
  const clock = new FakeClock();
  const timers = new IdleTimers(clock);
  const one = idle(2_000);
  timers.add(one);
  clock.advance(10_000);
  clock.advance(10_000);
  assert.equal(one.expired, 1);
});
