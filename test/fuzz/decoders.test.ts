/** A short run of `npm run fuzz`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { drive } from "./decoders/drive.ts";
import { once } from "./decoders/kinds.ts";
import { TARGETS } from "./decoders/targets.ts";

const seed = Date.now() % 0x7fff_ffff;

// First, while the times in the seeds are new.
test("every seed is a good message", () => {
  const stale = /before|type 1|says: no/; // seeds that name another time, a request that came already, the other direction, a no
  for (const { name, seeds, run } of TARGETS)
    for (const message of seeds) {
      if (name === "ss 2022 answer") continue; // it answers a request that was never made
      try {
        run([message]);
      } catch (error) {
        assert.ok(error instanceof Error && stale.test(error.message), `${name}: ${error}`);
      }
    }
});

test(`every decoder, seed ${seed}`, { timeout: 120_000 }, async () => {
  const { executions, refused } = await drive(TARGETS, 20_000, seed);
  assert.equal(executions, 20_000);
  assert.ok(refused > executions / 10, "hardly anything was refused: the inputs are too tame");
});

test("the driver notices a crash and an input that costs too much", async () => {
  const crash = once("crash", [Buffer.from("x")], () => {
    throw new TypeError("boom");
  });
  await assert.rejects(drive([crash], 10, 1), /crash: TypeError: boom; input/);
  const slow = once("slow", [Buffer.from("x")], () => {
    for (const { user } = process.cpuUsage(); process.cpuUsage().user < user + 60_000;);
  });
  await assert.rejects(drive([slow], 10, 1), /slow: \d+/);
});
