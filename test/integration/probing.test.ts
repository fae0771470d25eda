/** Unauthenticated clients learn nothing from what comes back. How long it takes is measured by `npm run probe`, on a quiet machine. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { differences, probeServer } from "../support/probing/probe.ts";
import { servers } from "../support/probing/servers.ts";

const ANY_TIME = Infinity;

for (const probed of await servers())
  test(probed.name, { timeout: 60_000 }, async () => {
    const findings = await probeServer(probed, 25, false);
    for (const { count, answers } of findings) {
      assert.equal(count, 25);
      if (probed.records) assert.match(answers.join(), /^records 22 .*end$/); // its TLS did answer
    }
    assert.deepEqual(differences(findings, ANY_TIME), []);
  });

test("a difference between answers is reported", () => {
  const finding = { server: "x", group: 0, count: 1 };
  const told = differences(
    [
      { ...finding, kind: "a", answers: ["0 bytes"], medianMs: 1 },
      { ...finding, kind: "b", answers: ["2 bytes"], medianMs: 2 },
    ],
    0.1,
  );
  assert.equal(told.length, 2);
});
