import assert from "node:assert/strict";
import { test } from "node:test";
import { ALPN_KINDS, alpnKind, DestBoard } from "./dest-board.ts";

const DIAL = {
  address: Uint8Array.from({ length: 16 }, (_, at) => at + 1),
  mark: -1,
  timeoutMs: 250,
  idleSeconds: 15,
  intervalSeconds: 7,
  device: Buffer.from("wg0"),
};

test("what is written is read by others, until it is none", () => {
  const board = DestBoard.make(2);
  const other = DestBoard.of(board.memory, 2);
  assert.equal(other.dial(), null);
  const nowMs = 1_700_000_000_000;
  board.writeDial(DIAL, nowMs);
  const { device = Buffer.of(), address = Buffer.of(), ...rest } = other.dial() ?? {};
  assert.deepEqual([String(Buffer.from(device)), ...address], ["wg0", ...DIAL.address]);
  assert.deepEqual(rest, { mark: -1, timeoutMs: 250, idleSeconds: 15, intervalSeconds: 7 });
  assert.ok(Math.abs(other.nowMs() - nowMs) < 60_000);
  board.writeDial(null, nowMs);
  assert.equal(other.dial(), null);
});

test("an address is good for seconds", (context) => {
  const board = DestBoard.make(1);
  board.writeDial(DIAL, 0);
  const [seconds, nanoseconds] = process.hrtime();
  let addedSeconds = 2;
  context.mock.method(process, "hrtime", () => [seconds + addedSeconds, nanoseconds]);
  assert.notEqual(board.dial(), null);
  addedSeconds = 6;
  assert.equal(board.dial(), null);
});

test("lengths of each name and kind of ALPN", () => {
  const board = DestBoard.make(2);
  board.writeLater(1, alpnKind(["h2", "http/1.1"]), [79, 79, 60]);
  board.writeLater(0, alpnKind([]), [Number.MAX_SAFE_INTEGER % 65_536]);
  const all = [0, 1].map((name) => ALPN_KINDS.map((_, alpn) => board.later(name, alpn)));
  assert.deepEqual(all, [
    [[65_535], [], []],
    [[], [], [79, 79, 60]],
  ]);
});

test("more lengths than there is room for", () => {
  const board = DestBoard.make(1);
  board.writeLater(
    0,
    2,
    Array.from({ length: 100 }, () => 5),
  );
  assert.equal(board.later(0, 2).length, 32);
  assert.deepEqual(board.later(0, 1), []);
});

test("however long a writer stands still, one of both states is read, and whole", () => {
  const board = DestBoard.make(1);
  const other = DestBoard.of(board.memory, 1);
  board.writeDial(DIAL, 1_000);
  board.writeLater(0, 2, [79]);
  const seen: unknown[] = [];
  const look = (): void => {
    const { address = Buffer.of(), device = Buffer.of(), timeoutMs } = other.dial() ?? {};
    const passedMs = other.nowMs() - (timeoutMs === DIAL.timeoutMs ? 1_000 : 2_000);
    seen.push([timeoutMs, [...address], String(Buffer.from(device)), other.later(0, 2), passedMs < 60_000]);
  };
  const next = {
    ...DIAL,
    timeoutMs: 500,
    address: DIAL.address.toReversed(),
    get device() {
      look();
      return Buffer.from("eth1");
    },
  };
  board.writeDial(next, 2_000);
  look();
  const after = [500, [...DIAL.address].toReversed(), "eth1", [79], true];
  assert.deepEqual(seen, [[250, [...DIAL.address], "wg0", [79], true], after, after]);
});
