/** A router whose rules forgot that weir's own packets must pass: what it dials comes back to it, and goes round once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipNetns } from "../support/netns.ts";
import { FAMILIES, manual, openRow } from "../support/netns-row.ts";
import { startCore } from "../support/start-core.ts";

const skip = skipNetns("loop", "nft", "curl");

/** Without the `routing-mark` that the rules let pass. */
const CONFIG = `
tproxy-port: 7893
allow-lan: true
log-level: debug
dns: { enable: true, nameserver: ["${FAMILIES[0].origin}"] }
rules: ["MATCH,DIRECT"]
`;

test("a connection and a datagram that come back are refused", { skip, timeout: 60_000 }, async () => {
  await using row = await openRow("loop");
  const { client, router } = row;
  const routes = manual("tproxy", "sh").trimEnd().split("\n");
  await router.ip(...routes.map((line) => line.replace(/^ip /, "")));
  await router.nft(manual("tproxy", "nft"));
  await using core = await startCore(CONFIG, { prefix: router.prefix });
  const looped = (network: string) =>
    core.output().match(new RegExp(`\\[${network}\\].*a loop: .* is a socket of DIRECT`, "g"))?.length ?? 0;
  const sessions = (network: string) =>
    core.output().match(new RegExp(`\\[${network}\\] .*--> \\S+ match`, "g"))?.length ?? 0;

  assert.equal(await row.near("silence", FAMILIES[0].origin, 7), "silence");
  await core.shows(/\[UDP\].*a loop: .* is a socket of DIRECT/);
  assert.deepEqual([looped("UDP"), sessions("UDP")], [1, 1]);

  await assert.rejects(client.run("curl", "-sS", "--max-time", "10", FAMILIES[0].url));
  await core.shows(/\[TCP\].*a loop: .* is a socket of DIRECT/);
  // One round more where two readinesses of the kernel did not come in the same turn.
  assert.ok(looped("TCP") >= 1 && sessions("TCP") <= 3, core.output());
  assert.equal(await core.stop(), 0);
});
