/** Short forms of the measurements whose outcome no busy machine changes; `npm run bench:governance` has the long ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { measureDamage } from "../../bench/governance/damage.ts";
import { measureKills } from "../../bench/governance/kill.ts";
import { measureOvershoot, survivesKill } from "../../bench/governance/quota.ts";

const KIB = 1024;

test("§9.3 random damage to one file of the store: what was acknowledged last is there, every time", async () => {
  const { outcomes, faults } = await measureDamage(60);
  assert.deepEqual(faults, []);
  assert.deepEqual([...outcomes.keys()], ["exact"]);
});

test("§9.2 SIGKILL under load: nothing counts twice, in any of the places where it is kept", async () => {
  const { faults } = await measureKills(3);
  assert.deepEqual(faults, []);
});

for (const [connections, relay] of [
  [1, "auto"],
  [8, "auto"],
  [8, "portable"],
] as const)
  test(`§5 a quota of 10 MB under ${connections} connections at full speed, relay ${relay}: at most 64 KiB a connection too much`, async () => {
    const { countedBytes } = await measureOvershoot(connections, relay);
    assert.ok(countedBytes <= 64 * KIB * connections, `${countedBytes} bytes`);
  });

test("§9.2 a quota that was reached is known after a SIGKILL", async () => {
  assert.ok(await survivesKill(8, 1000)); // the bound of 100 ms is measured by the bench
});
