/** Everything at once, briefly: descriptors come back, every byte is right and no honest client fails; `npm run prove:mixed` does it at length. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { proveMixed, shownMixed } from "../proofs/mixed-load.ts";

const skip = process.platform === "linux" ? false : "SKIP mixed load: needs Linux";

test("reloads, refreshes, an API and hostile clients cost honest ones nothing", { skip }, async (context) => {
  const plan = { quietMs: 1_000, loadMs: 12_000, hostileAMinute: 3_000, reloadEveryMs: 1_000, tun: false };
  const found = await proveMixed(plan);
  context.diagnostic(shownMixed(found));
  assert.deepEqual(found.faults, []);
  assert.ok(found.exchanges > 0 && found.hostile > 0 && found.reloads > 1);
});
