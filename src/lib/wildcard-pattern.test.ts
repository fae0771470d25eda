import assert from "node:assert/strict";
import { test } from "node:test";
import { editDistance, nearest, suggestion } from "./nearest-word.ts";
import { compilePattern } from "./wildcard-pattern.ts";

test("inline flags hold to the end of their group", () => {
  assert.ok(compilePattern("(?i)hk|香港").test("HK 1"));
  assert.ok(compilePattern("a(?i)b").test("aB"));
  assert.ok(!compilePattern("a(?i)b").test("AB"));
  assert.ok(compilePattern("^(x(?i)y|z)Q$").test("ZQ"));
  assert.ok(!compilePattern("^(x(?i)y|z)Q$").test("Zq"));
  assert.ok(compilePattern("^(?!.*US).*$").test("JP"));
  assert.ok(compilePattern(String.raw`a\-b[(?i)]`).test("a-bi"));
  assert.ok(compilePattern("[🇭🇰]").test("🇰"));
  assert.throws(() => compilePattern("(a"), SyntaxError);
});

test("the nearest name", () => {
  assert.equal(editDistance("rule", "ruel", 3), 1);
  assert.equal(editDistance("abc", "", 2), 3);
  assert.equal(nearest("fakeip", ["normal", "fake-ip", "redir-host"]), "fake-ip");
  assert.equal(nearest("Proxy", ["proxy", "PROXY"]), "proxy");
  assert.equal(nearest("zzzz", ["rule", "global"]), null);
  assert.equal(suggestion("gobal", ["rule", "global"]), '; did you mean "global"?');
});
