/** Every way of relaying under connections that end badly. `npm run soak` does the same for as long as it is told. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { relayPaths } from "../support/carriers.ts";
import { watchLeaks } from "../support/leaks.ts";
import { chaos } from "../support/relay-chaos.ts";
import { until } from "../support/until.ts";

const FLOWS = 250;

const paths = await relayPaths();

function descriptors(): readonly string[] {
  return process.platform === "linux" ? readdirSync("/proc/self/fd") : [];
}

for (const { name, backend } of paths)
  for (const limited of [false, true])
    test(`${name}, ${limited ? "limited" : "free"}: half-closes, resets, stalls and kills cost no other connection a byte`, async () => {
      const noLeaks = watchLeaks();
      const before = descriptors().length;
      const seed = Math.floor(Math.random() * 2 ** 31);
      const { faults, whole } = await chaos({ flows: FLOWS, parallel: 50, seed, backend, limited });
      assert.deepEqual(faults.slice(0, 5), [], `seed ${seed}`);
      assert.ok(whole > FLOWS / 2);
      await noLeaks();
      // A thread keeps its idle pipes for some seconds.
      await until(
        () => `${before} descriptors, not ${descriptors().length}`,
        () => descriptors().length <= before,
        { everyMs: 100 },
      );
    });
