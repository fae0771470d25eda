import assert from "node:assert/strict";
import { test } from "node:test";
import { LiveUsers } from "./live-users.ts";

test("a removed user loses all open sessions, others keep theirs", () => {
  const live = new LiveUsers();
  const ended: string[] = [];
  live.add("ada", () => ended.push("ada 1"));
  const second = live.add("ada", () => ended.push("ada 2"));
  live.add("bob", () => ended.push("bob"));
  live.add(null, () => ended.push("no user"));
  second[Symbol.dispose]();
  live.retain((user) => user === "bob");
  assert.deepEqual(ended, ["ada 1"]);
  live.retain(() => false);
  assert.deepEqual(ended, ["ada 1", "bob"]);
});

test("ending may dispose", () => {
  const live = new LiveUsers();
  const entry = live.add("ada", () => entry[Symbol.dispose]());
  live.retain(() => false);
  live.add("ada", () => assert.fail());
  live.retain(() => true);
});
