import assert from "node:assert/strict";
import { test } from "node:test";
import { PacketWindow, WINDOW_PACKETS } from "./packet-window.ts";
import { ReplayFilter } from "./replay-filter.ts";

const value = (number: number) => Buffer.from([number >> 8, number & 0xff]);

test("replay filter: once only, for the window", () => {
  let now = 0;
  const filter = new ReplayFilter({ capacity: 100, windowMs: 60, now: () => now });
  assert.equal(filter.add(value(1)), true);
  now = 59;
  assert.equal(filter.add(value(1)), false);
  assert.equal(filter.add(value(2)), true);
  now = 118; // value 2 was added 59 ms ago: still in the old generation
  assert.equal(filter.add(value(2)), false);
  now = 400;
  assert.equal(filter.has(value(1)), false);
  assert.equal(filter.add(value(2)), true);
});

test("replay filter: bounded, the newest are kept", () => {
  const filter = new ReplayFilter({ capacity: 10, windowMs: Infinity, now: () => 0 });
  for (let at = 0; at < 1000; at++) assert.equal(filter.add(value(at)), true);
  for (let at = 990; at < 1000; at++) assert.equal(filter.add(value(at)), false);
  assert.equal(filter.has(value(900)), false);
});

test("packet window: any order within the window, each once", () => {
  const window = new PacketWindow();
  for (const id of [0n, 1n, 5n, 3n, 2n, 4n]) assert.equal(window.accept(id), true);
  for (const id of [0n, 1n, 2n, 3n, 4n, 5n]) assert.equal(window.accept(id), false);
  assert.equal(window.accept(100_000n), true);
  assert.equal(window.accept(100_000n - BigInt(WINDOW_PACKETS)), false);
  assert.equal(window.accept(100_001n - BigInt(WINDOW_PACKETS)), true);
  assert.equal(window.accept(100_001n - BigInt(WINDOW_PACKETS)), false);
  assert.equal(window.accept((1n << 64n) - 1n), true);
});

test("packet window: agrees with a plain list for random walks", () => {
  const window = new PacketWindow();
  const seen = new Set<bigint>([0n]);
  window.accept(0n);
  let newest = 0n;
  let seed = 7;
  for (let step = 0; step < 20_000; step++) {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    const id = newest + BigInt((seed % 9000) - 8500);
    if (id < 0n) {
      newest += 3n;
      continue;
    }
    const fresh = !seen.has(id) && (id > newest || newest - id < BigInt(WINDOW_PACKETS));
    assert.equal(window.accept(id), fresh, `id ${id} newest ${newest}`);
    if (fresh) seen.add(id);
    if (id > newest) newest = id;
  }
});
