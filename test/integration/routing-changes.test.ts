/** What rules and lists decide changes in one way only, and whatever was decided before is dropped with it. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { openSafeFiles } from "#config/safe-path.ts";
import { openHost } from "#host/host.ts";
import { LogHub } from "#host/log.ts";
import type { Plane } from "#kernel-direct/plane.ts";
import type { Ip } from "#core/session.ts";
import { ip } from "../support/routing.ts";

test("a change of routing is applied when the kernel's sets are empty, even where it fails", async () => {
  const home = mkdtempSync(join(tmpdir(), "weir-routing-"));
  using undo = new DisposableStack();
  undo.defer(() => rmSync(home, { recursive: true, force: true }));
  const log = new LogHub("silent", { write() {}, flush() {} });
  using host = openHost(home, openSafeFiles({ home, log }), log);
  const inKernel = new Set<Ip>();
  const plane: Plane = {
    async apply({ direct }) {
      for (const one of direct.remove) inKernel.delete(one);
      for (const one of direct.add) inKernel.add(one);
    },
    async replace(direct) {
      inKernel.clear();
      for (const one of direct) inKernel.add(one);
    },
  };
  host.kernelDirect.use({
    classify: () => ({ direct: true, reason: "" }),
    isLearnable: () => true,
    isDirect: () => true,
    signature: () => "1",
  });
  const consumer = host.kernelDirect.attach({
    maxEntries: 10,
    inbound: { ruleList: null, target: null },
    planes: [plane],
  });
  const learn = () =>
    host.kernelDirect.answered({ host: "a.org", addresses: [{ ip: ip("192.0.2.1"), ttlMs: 60_000 }] });
  await learn();
  assert.deepEqual([...inKernel], ["192.0.2.1"]);
  let seen = -1;
  await host.changeRouting(() => void (seen = inKernel.size));
  assert.equal(seen, 0);
  await setImmediate(); // what is learnt in the turn of a change is forgotten in the next
  await learn();
  assert.equal(inKernel.size, 1);
  const failing = host.changeRouting(() => {
    throw new Error("the database is damaged");
  });
  await assert.rejects(failing, /the database is damaged/);
  assert.equal(inKernel.size, 0);
  await host.kernelDirect.detach(consumer);
});
