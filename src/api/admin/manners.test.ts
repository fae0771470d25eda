/** How the admin API takes its bodies, and what stands on every answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { apiApp } from "../../../test/support/api-app.ts";
import { MemoryControl } from "../../../test/support/memory-control.ts";
import { ADMIN_SECRET, MemoryUsers } from "../../../test/support/memory-users.ts";
import { adminRoutes } from "./index.ts";

const BEARER = { authorization: `Bearer ${ADMIN_SECRET}` };

async function admin() {
  const users = new MemoryUsers();
  const mounts = () => adminRoutes(users, new MemoryControl(), { kind: "http", isLocal: true });
  return (await apiApp({ mounts })).app;
}

test("controller-api.md §2.4 keys of bodies match in any case, null is absent, unknown keys are ignored", async () => {
  const app = await admin();
  const change = (payload: object) =>
    app.inject({ method: "PUT", url: "/api/admin/users/1", headers: BEARER, payload });
  const changed = await change({
    Revision: 1,
    NAME: "bob",
    flow: null,
    quota: { Total_Bytes: 5, reset: null },
    x: 1,
  });
  assert.equal(changed.statusCode, 200, changed.body);
  const user = changed.json<{ name: string; revision: number }>();
  assert.equal(user.name, "bob");
  for (const payload of [{}, { revision: null }, { revision: "2" }, { revision: 2, enabled: 1 }])
    assert.equal((await change(payload)).statusCode, 400, JSON.stringify(payload));
});

test("svc-admin-api §3 no answer may be kept, not even one to an unknown Host", async () => {
  const app = await admin();
  const answer = await app.inject({ url: "/api/admin/users", headers: { ...BEARER, host: "evil.example" } });
  assert.deepEqual([answer.statusCode, answer.headers["cache-control"]], [403, "no-store"]);
});
