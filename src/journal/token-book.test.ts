import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { TokenBook } from "./token-book.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** A book with one token that lives for an hour, and a clock that can be set without any time passing. */
async function withToken(context: TestContext) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  let nowMs = 1_785_312_000_000;
  const book = new TokenBook({ commit: async () => {} }, [], () => nowMs);
  context.after(() => book[Symbol.dispose]());
  const draft = { name: "shop", scopes: ["read"], listener: null, expiresAtMs: nowMs + HOUR_MS } as const;
  const { token } = await book.create(draft);
  return {
    set: (aheadMs: number) => void (nowMs += aheadMs),
    pass(ms: number) {
      nowMs += ms;
      context.mock.timers.tick(ms);
    },
    find: () => book.find(token),
    usedAtMs: () => book.views()[0]?.usedAtMs,
    nowMs: () => nowMs,
  };
}

test("streams of a token end when its hour is over, and not before", async (context) => {
  const { pass, find } = await withToken(context);
  const gone = find()?.gone;
  pass(HOUR_MS - 1);
  assert.equal(gone?.aborted, false);
  pass(1);
  assert.deepEqual([gone?.aborted, find()], [true, null]);
});

test("a clock that is set past a token's end ends its streams within a minute", async (context) => {
  const { set, pass, find } = await withToken(context);
  const gone = find()?.gone;
  set(2 * HOUR_MS);
  assert.equal(find(), null);
  pass(MINUTE_MS);
  assert.equal(gone?.aborted, true);
});

test("after a clock that was ahead for a moment a token opens streams that stay, and end at its end", async (context) => {
  const { set, pass, find } = await withToken(context);
  const before = find()?.gone;
  set(2 * HOUR_MS);
  pass(MINUTE_MS);
  set(-2 * HOUR_MS);
  const after = find()?.gone;
  assert.deepEqual([before?.aborted, after?.aborted, find()?.gone === after], [true, false, true]);
  pass(HOUR_MS);
  assert.equal(after?.aborted, true);
});

test("a use while the clock was ahead does not hide later ones", async (context) => {
  const { set, find, usedAtMs, nowMs } = await withToken(context);
  set(HOUR_MS - 1);
  find();
  set(-3 * HOUR_MS);
  find();
  assert.equal(usedAtMs(), nowMs());
});
