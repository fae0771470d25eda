/** Another process takes over from the one that a router's nftables gives TCP and UDP to. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Capture, CAPTURES, capture, RELAYS } from "../support/netns-captured.ts";
import { skipNetns } from "../support/netns.ts";
import { FAMILIES, leftovers, openRow, type Row, type Talk } from "../support/netns-row.ts";
import { openUpgradedCore } from "../support/upgraded-core.ts";

const skip = skipNetns("tproxy", "nft");
const [V4] = FAMILIES;

const config = (relay: string) => `
relay: ${relay}
redir-port: ${CAPTURES.redir}
tproxy-port: ${CAPTURES.tproxy}
allow-lan: true
routing-mark: 6666
interface-name: up0
rules: ["MATCH,DIRECT"]
`;

/** One connection and one UDP socket that go on. Redirected UDP there is none. */
function holding(row: Row, by: Capture) {
  const held = row.talk("hold", V4.origin, 7);
  const answers = (line: string) => [`tcp ${line}`, ...(by === "tproxy" ? [`udp 7:${line}`] : [])];
  return async (line: string): Promise<void> => {
    held.say(line);
    const got: string[] = [];
    for (const _ of answers(line)) got.push(await held.nextLine());
    assert.deepEqual(got.toSorted(), answers(line));
  };
}

interface Steady {
  readonly tcp: number;
  readonly udp: number;
  readonly faults: readonly string[];
}

async function checkSteady(load: Talk, by: Capture): Promise<void> {
  load.close();
  const { tcp, udp, faults }: Steady = JSON.parse(await load.nextLine());
  assert.deepEqual(faults, []);
  assert.ok(tcp > 20 && (by === "redir" || udp > 4), `${tcp} connections, ${udp} flows`);
}

for (const by of ["tproxy", "redir"] as const)
  for (const relay of RELAYS)
    test(
      `${by}, relay: ${relay}: nothing is refused or lost, and what was open goes on`,
      { skip, timeout: 240_000 },
      async () => {
        await using row = await openRow(`up-${by}`); // forwards nothing: what arrives went through weir
        await capture(row, by);
        await using upgraded = await openUpgradedCore(config(relay), row.router.prefix);
        const round = holding(row, by);
        const loads = FAMILIES.map(({ origin }) => row.talk("steady", origin, 7, by === "tproxy" ? 1 : 0));
        for (const load of loads) assert.equal(await load.nextLine(), "begun");
        await round("one");
        const first = upgraded.pid;
        await upgraded.upgrade();
        await round("two");
        const second = upgraded.pid;
        await upgraded.upgrade();
        await round("three");
        for (const load of loads) await checkSteady(load, by);
        assert.deepEqual(
          upgraded.alive(),
          [first, second, upgraded.pid].toSorted((left, right) => left - right),
        );
        await upgraded.end(first);
        await upgraded.end(second);
        for (const { origin } of FAMILIES) {
          assert.equal(await row.near("many", origin, 7, 50), "50 echoed");
          if (by === "tproxy") assert.equal(await row.near("udp", origin, 7, 1400), "echo of 1400");
        }
        assert.doesNotMatch(upgraded.core.output(), /level=(error|fatal)/);
      },
    );

test("nothing is left behind", { skip }, () => {
  for (const by of ["tproxy", "redir"]) assert.deepEqual(leftovers(`up-${by}`), []);
});
