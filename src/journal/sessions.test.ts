import assert from "node:assert/strict";
import { test } from "node:test";
import { Sessions } from "./sessions.ts";

const HOUR_MS = 3_600_000;

test("a session stands for its secrets alone, until it is closed or over", () => {
  let nowMs = 0;
  const sessions = new Sessions(() => nowMs);
  const { token, lastsMs } = sessions.open(["one"]);
  const other = sessions.open(["one", "two"]).token;
  assert.ok(sessions.opens(token, "one"));
  assert.ok(!sessions.opens(token, "two") && sessions.opens(other, "two"));
  assert.ok(!sessions.opens(`${token}x`, "one") && !sessions.opens("", "one"));
  sessions.close(token);
  assert.ok(!sessions.opens(token, "one") && sessions.opens(other, "one"));
  nowMs = lastsMs;
  assert.ok(!sessions.opens(other, "one"));
});

test("the oldest of too many sessions goes first", () => {
  const sessions = new Sessions(() => 0);
  const tokens = Array.from({ length: 65 }, () => sessions.open(["one"]).token);
  assert.deepEqual(
    tokens.map((token) => sessions.opens(token, "one")),
    tokens.map((_, at) => at > 0),
  );
});

test("a code opens once, within minutes; a new one takes its place", () => {
  let nowMs = 0;
  const sessions = new Sessions(() => nowMs);
  assert.ok(!sessions.takeCode(""));
  const first = sessions.newCode();
  const second = sessions.newCode();
  assert.ok(!sessions.takeCode(first) && sessions.takeCode(second) && !sessions.takeCode(second));
  const late = sessions.newCode();
  nowMs = HOUR_MS;
  assert.ok(!sessions.takeCode(late));
  const guessed = sessions.newCode();
  assert.ok(!sessions.takeCode("guess") && sessions.takeCode(guessed));
});
