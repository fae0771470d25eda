import assert from "node:assert/strict";
import { test } from "node:test";
import { AccountBook } from "#protocols/mixed/accounts.ts";
import { encodeBasic, identify, parseBasic } from "./credentials.ts";

test("Basic", () => {
  assert.equal(encodeBasic("alice", "s3cr"), "Basic YWxpY2U6czNjcg==");
  assert.deepEqual(parseBasic("basic  YWxpY2U6czNjcg=="), { username: "alice", password: "s3cr" });
  assert.deepEqual(parseBasic(encodeBasic("ü", "a:b")), { username: "ü", password: "a:b" });
  assert.deepEqual(parseBasic(encodeBasic("a", "")), { username: "a", password: "" });
  for (const value of ["", "Basic", "Basic !", "Bearer YQ==", "Basic YWxpY2U="])
    assert.equal(parseBasic(value), null);
});

test("accounts: the later of two wins, unknown users and wrong passwords fail alike", () => {
  const book = new AccountBook([
    { username: "a", password: "old" },
    { username: "a", password: "new" },
    { username: "b", password: "" },
  ]);
  assert.equal(book.verify("a", "new"), true);
  assert.equal(book.verify("a", "old"), false);
  assert.equal(book.verify("b", ""), true);
  assert.equal(book.verify("c", ""), false);
  assert.equal(identify(null, undefined), null);
  assert.equal(identify(book, undefined), undefined);
  assert.equal(identify(book, encodeBasic("a", "new")), "a");
  assert.equal(identify(book, encodeBasic("a", "no")), undefined);
});
