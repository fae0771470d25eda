import assert from "node:assert/strict";
import { test } from "node:test";
import { hostPort } from "#ui/format.ts";
import { fa } from "#ui/words/fa/index.ts";
import { ru } from "#ui/words/ru/index.ts";
import { ENGLISH, Words } from "#ui/words/words.ts";

test("bytes have three digits at most", () => {
  for (const [bytes, text] of [
    [-5, "0 B"],
    [0, "0 B"],
    [999, "999 B"],
    [1000, "0.98 KiB"],
    [1536, "1.50 KiB"],
    [12_345, "12.1 KiB"],
    [999_999, "977 KiB"],
    [1_073_741_824, "1.00 GiB"],
    [2 ** 60, "1024 PiB"],
  ] as const)
    assert.equal(ENGLISH.bytes(bytes), text);
  assert.equal(ENGLISH.rate(2048), "2.00 KiB/s");
  assert.equal(ENGLISH.count(1234567), "1,234,567");
});

test("durations have two parts at most; the epoch and the zero time mean never", () => {
  const minute = 60_000;
  for (const [ms, text] of [
    [-1, "0 s"],
    [59_999, "59 s"],
    [3 * minute, "3 min"],
    [60 * minute, "1 h"],
    [125 * minute, "2 h 5 min"],
    [25 * 60 * minute, "1 d 1 h"],
  ] as const)
    assert.equal(ENGLISH.duration(ms), text);
  const nowMs = Date.UTC(2026, 0, 1);
  assert.equal(ENGLISH.ago("2025-12-31T23:59:30Z", nowMs), "30 s ago");
  for (const never of [undefined, "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "nonsense"])
    assert.equal(ENGLISH.ago(never, nowMs), "never");
  assert.equal(hostPort("::1", "53"), "[::1]:53");
});

test("another language has its own digits, points and plural forms", () => {
  const russian = new Words("ru", ru);
  assert.equal(russian.bytes(1536), "1,50 КиБ");
  assert.deepEqual(
    [1, 2, 5, 21].map((count) => russian.t("users.count", { count })),
    ["1 пользователь", "2 пользователя", "5 пользователей", "21 пользователь"],
  );
  const persian = new Words("fa", fa);
  assert.equal(persian.bytes(1536), "۱٫۵۰ KiB");
  assert.equal(persian.duration(125 * 60_000), "۲ ساعت ۵ دقیقه");
});
