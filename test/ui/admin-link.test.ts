import assert from "node:assert/strict";
import { test } from "node:test";
import { AdminLink } from "#ui/api/admin.ts";
import { Link } from "#ui/api/link.ts";

test("what says nothing about the admin API's state reaches the caller; the rest is the state", async (t) => {
  const admin = new AdminLink(new Link("http://127.0.0.1:9090/ui/"));
  const answering = t.mock.method(globalThis, "fetch", () => Promise.resolve(answer.clone()));
  let answer = new Response("{}", { status: 401 });
  await admin.unlock("wrong");
  assert.deepEqual(admin.state.value, { kind: "locked", refused: true });
  answer = new Response('{"message":"Internal Server Error"}', { status: 500 });
  await assert.rejects(admin.unlock("right"), /Internal Server Error/);
  answer = new Response("404 page not found", { status: 404 });
  await admin.probe();
  assert.deepEqual(admin.state.value, { kind: "absent" });
  answering.mock.mockImplementation(() => Promise.reject(new TypeError("failed")));
  await assert.rejects(admin.probe(), /cannot be reached/);
});
