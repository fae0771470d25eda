import assert from "node:assert/strict";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { AccountBook } from "./accounts.ts";

test("of two accounts with one name the later counts; users with the same password are told apart", () => {
  const book = new AccountBook([
    { username: "a", password: "old" },
    { username: "a", password: "x" },
    { username: "b", password: "x" },
  ]);
  assert.deepEqual(
    book.written.map(({ id }) => id),
    ["a", "b"],
  );
  assert.deepEqual(
    [book.verify("a", "old"), book.verify("a", "x"), book.verify("b", "x"), book.verify("c", "x")],
    [false, true, true, false],
  );
  assert.equal(new Set(book.written.map(({ credential }) => credential)).size, 2);
});

test("a user who is removed, or has another password, loses the connections authenticated before", async () => {
  const accounts = ["gone", "changed", "stays"].map((username) => ({ username, password: "1" }));
  const book = new AccountBook(accounts);
  const streams = accounts.map(({ username }) => {
    const stream = new PassThrough();
    const door = book.authenticator(stream);
    assert.equal(door.verify(username, "2"), false);
    assert.equal(door.verify(username, "1"), true);
    return stream;
  });
  const unknownClient = new PassThrough();
  assert.equal(book.authenticator(unknownClient).verify("gone", "wrong"), false);
  const next = new AccountBook([
    { username: "changed", password: "2" },
    { username: "stays", password: "1" },
  ]);
  const ends = Promise.all(streams.slice(0, 2).map((stream) => once(stream, "close")));
  assert.deepEqual([...book.replace(next.written)], ["gone", "changed"]);
  await ends;
  assert.deepEqual([streams[2]?.destroyed, unknownClient.destroyed], [false, false]);
  assert.deepEqual([book.verify("gone", "1"), book.verify("changed", "2")], [false, true]);
  assert.equal(book.replace(next.written).size, 0);
});
