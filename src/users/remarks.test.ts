import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "#core/errors.ts";
import { changedRemarks, NO_REMARKS, remarksJson, remarksOf } from "./remarks.ts";

const WRITTEN = { note: "paid until May", labels: ["family", "Tehran"] };

test("what a change does not name stays; what is emptied is gone, and leaves nothing behind", () => {
  assert.equal(changedRemarks(NO_REMARKS, {}), NO_REMARKS);
  assert.deepEqual(changedRemarks(WRITTEN, { note: " \n" }), { note: "", labels: WRITTEN.labels });
  assert.deepEqual(changedRemarks(WRITTEN, { labels: ["x"] }), { note: WRITTEN.note, labels: ["x"] });
  const emptied = changedRemarks(WRITTEN, { note: "", labels: [] });
  assert.equal(emptied, NO_REMARKS);
  assert.deepEqual(remarksJson(emptied), {});
  assert.deepEqual(remarksOf(remarksJson(WRITTEN)), WRITTEN);
});

test("notes keep their lines; labels are trimmed, and one in another case is the same one", () => {
  const { note, labels } = changedRemarks(NO_REMARKS, {
    note: " one\r\ntwo\tthree ",
    labels: [" Family ", "family", "خانواده"],
  });
  assert.deepEqual([note, labels], ["one\ntwo\tthree", ["Family", "خانواده"]]);
});

test("what is too long, too much or no text is refused by name", () => {
  const wrong: readonly [Parameters<typeof changedRemarks>[1], RegExp][] = [
    [{ note: "x".repeat(4097) }, /^note: .* 4096 bytes/],
    [{ note: "a\u0000b" }, /^note: must be text/],
    [{ note: "\ud800" }, /^note: must be text/],
    [{ labels: [" "] }, /^labels: must not be blank/],
    [{ labels: ["a,b"] }, /^labels: .* comma/],
    [{ labels: ["a\nb"] }, /^labels: .* one line/],
    [{ labels: ["я".repeat(33)] }, /^labels: each .* 64 bytes/],
    [{ labels: Array.from({ length: 17 }, (_, at) => `l${at}`) }, /^labels: must be at most 16/],
  ];
  for (const [change, message] of wrong)
    assert.throws(
      () => changedRemarks(NO_REMARKS, change),
      (error: unknown) => error instanceof ApiError && error.status === 400 && message.test(error.message),
    );
});
