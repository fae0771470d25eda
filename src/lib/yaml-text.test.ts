import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { yamlText } from "./yaml-text.ts";

test("a text without such signs is written as plainly as before", () => {
  assert.equal(yamlText({ name: "李 雷", list: [1, "two"] }), "name: 李 雷\nlist:\n  - 1\n  - two\n");
});

for (const sign of ["\x7f", "\x85", "\x9f", "\u2028", "\u2029", "\ufeff", "\uffff"])
  test(`U+${sign.charCodeAt(0).toString(16)} is escaped, in keys and after long texts, too`, () => {
    const value = { [`a${sign}b`]: `${"long and ".repeat(20)}${sign}`, list: [`x${sign}\n"\\`, "plain"] };
    const text = yamlText(value);
    assert.equal(text.includes(sign), false);
    assert.deepEqual(parse(text), value);
  });
