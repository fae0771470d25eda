/** What is counted, over every kind of listener; `npm run bench:governance account 10000` is the long run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { measureAccount } from "../../bench/governance/account.ts";
import { skipNetns } from "../support/netns.ts";
import { FAMILIES, manual, openRow } from "../support/netns-row.ts";
import { startCore } from "../support/start-core.ts";

test("§4.3 every kind of listener: policies of every kind and their reports have what the origin received and sent", async () => {
  const { differences, compared } = await measureAccount(80);
  assert.deepEqual(differences, []);
  assert.ok(compared > 40, `${compared} series`);
});

const skip = skipNetns("governed redir and tproxy", "nft", "curl");

const ECHOES = 20;
const ECHO_BYTES = 20_000; // what `many` of netns-near.ts sends
const DATAGRAM_BYTES = 1_400;
/** The port that the origin puts before an answer. */
const PREFIX_BYTES = 2;

for (const [kind, port] of [
  ["redir", 7892],
  ["tproxy", 7893],
] as const)
  test(
    `§4.3 captured by ${kind}: what is echoed counts as often up as down, to the byte`,
    { skip, timeout: 60_000 },
    async () => {
      await using row = await openRow(`count-${kind}`);
      const { router } = row;
      if (kind === "tproxy") {
        const routes = manual("tproxy", "sh").trimEnd().split("\n");
        await router.ip(...routes.map((line) => line.replace(/^ip /, "")));
      }
      await router.nft(manual(kind, "nft"));
      await using _core = await startCore(
        `${kind}-port: ${port}
allow-lan: true
routing-mark: 6666
interface-name: up0
external-controller: 127.0.0.1:9090
rules: ["MATCH,DIRECT"]
traffic-control:
  enabled: true
  global: { id: all, download-bps: 10000000000 }
  devices: [{ id: near, source-cidrs: [203.0.113.0/24, "fd00:1::/64"] }]
  rules: [{ id: rest, type: MATCH, target: DIRECT }]
  targets: [{ id: node, kind: proxy, target: DIRECT }]
`,
        { prefix: router.prefix },
      );
      const expected = { upload_bytes: 0, download_bytes: 0, connections: 0, exceeded_events: 0 };
      const seen = (upload: number, download: number, connections: number): void => {
        expected.upload_bytes += upload;
        expected.download_bytes += download;
        expected.connections += connections;
      };
      for (const { origin } of FAMILIES) {
        assert.equal(await row.near("many", origin, 7, ECHOES), `${ECHOES} echoed`);
        seen(ECHOES * ECHO_BYTES, ECHOES * ECHO_BYTES, ECHOES);
        if (kind !== "tproxy") continue;
        assert.equal(await row.near("udp", origin, 7, DATAGRAM_BYTES), `echo of ${DATAGRAM_BYTES}`);
        seen(DATAGRAM_BYTES, PREFIX_BYTES + DATAGRAM_BYTES, 1);
      }
      const { policies } = JSON.parse(
        await router.run("curl", "-sS", "http://127.0.0.1:9090/api/svc/traffic-control/status"),
      ) as {
        readonly policies: readonly { readonly policy: { readonly id: string }; readonly counters: object }[];
      };
      assert.equal(policies.length, 4);
      for (const { policy, counters } of policies) assert.deepEqual(counters, expected, policy.id);
    },
  );
