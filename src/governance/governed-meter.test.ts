import assert from "node:assert/strict";
import { test } from "node:test";
import { governed, policy, settings } from "../../test/support/governed-ledger.ts";

test("a correction takes back what went nowhere, and neither comes back itself nor lets a held piece count", () => {
  const core = governed();
  core.apply(settings({ global: policy({ downloadBps: 8_000_000 }) }));
  const [busy, other] = [core.session(), core.session()];
  assert.ok(busy.charge("download", 100_000) > 0);
  core.clock.pass(1);
  assert.equal(other.charge("download", 10_000), 0);
  assert.ok(busy.charge("download", 100_000) > 0);
  other.correct("download", -10_000); // the bucket is in debt: it would hold a piece now
  other[Symbol.dispose]();
  busy.correct("download", -1000);
  busy[Symbol.dispose]();
  assert.equal(core.governance.status().policies[0]?.counters.download, 99_000);
  core.apply(null);
});
