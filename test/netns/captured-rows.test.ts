/** What the Controller shows of captured clients is the same, whether a worker has decided or the main thread. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { capture, CAPTURES, type Capture } from "../support/netns-captured.ts";
import { FAMILIES, openRow, ROUTER, type Row } from "../support/netns-row.ts";
import { skipNetns } from "../support/netns.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const skip = skipNetns("rows of captured clients", "nft", "curl");
const CIPHER = "2022-blake3-aes-128-gcm";
const PASSWORD = Buffer.alloc(16, 7).toString("base64");
const [{ origin }] = FAMILIES;
const SERVER = `
listeners:
  - { name: far, type: shadowsocks, listen: 0.0.0.0, port: 8388, cipher: ${CIPHER}, password: "${PASSWORD}" }
hosts: { www.origin.test: ${origin} }
rules: ["IP-CIDR6,${FAMILIES[1].origin}/128,DIRECT", "MATCH,DIRECT"]
`;

/** `find-process-mode: always` has the main thread decide everything. */
const config = (by: Capture, processes: "off" | "always", port7: string): string => `
${by}-port: ${CAPTURES[by]}
allow-lan: true
routing-mark: 6666
external-controller: 127.0.0.1:9090
find-process-mode: ${processes}
dns: { enable: true, listen: "203.0.113.1:53", enhanced-mode: fake-ip, nameserver: ["${origin}"] }
proxies:
  - { name: far, type: ss, server: ${origin}, port: 8388, cipher: ${CIPHER}, password: "${PASSWORD}" }
proxy-groups: [{ name: choice, type: select, proxies: [far, DIRECT] }]
rules: ["DST-PORT,7,${port7}", "MATCH,REJECT"]
`;

interface Connection {
  readonly id: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly chains: readonly string[];
  readonly rule: string;
  readonly rulePayload: string;
  readonly upload: number;
}

/** Without what differs from one connection to the next, and counts, which may be a moment late. */
function comparable({ metadata, ...rest }: Connection): unknown {
  const { sourcePort: _, ...same } = metadata;
  const { chains, rule, rulePayload } = rest;
  return { metadata: same, chains, rule, rulePayload };
}

/** A client that has said something by then, and been answered. */
async function hold(row: Row, host: string): Promise<void> {
  const held = row.talk("hold", host, 7);
  held.say("ping");
  for (let line = ""; line !== "tcp ping";) line = await held.nextLine(); // it says the same by UDP
}

async function rowsOf({ router }: Row): Promise<readonly Connection[]> {
  const text = await router.run("curl", "-sS", "http://127.0.0.1:9090/connections");
  const { connections } = JSON.parse(text) as { connections: readonly Connection[] | null };
  return (connections ?? []).filter(({ metadata }) => metadata["network"] === "tcp");
}

async function shown(row: Row, by: Capture, processes: "off" | "always", target: string): Promise<unknown> {
  await using core = await startCore(config(by, processes, target), { prefix: row.router.prefix });
  const fake = await row.near("dns", ROUTER[0]);
  assert.match(fake, /^198\.18\./);
  // The first client of a name has it resolved; only for the second the worker knows it.
  for (const host of [fake, fake, origin]) await row.near("many", host, 7, 1);
  const ids = new Set<string>();
  const seen: unknown[] = [];
  for (const host of [origin, FAMILIES[1].origin, fake]) {
    await hold(row, host);
    let one: Connection | undefined;
    await until(`a row of ${host} that has counted`, async () => {
      one = (await rowsOf(row)).find(({ id, upload }) => upload === 4 && !ids.has(id));
      return one !== undefined;
    });
    assert.ok(one);
    ids.add(one.id);
    seen.push(comparable(one));
  }
  await assert.rejects(row.client.run("curl", "-sS", "--max-time", "10", `http://${origin}/`)); // REJECT
  assert.doesNotMatch(core.output(), /level=(error|fatal)/);
  assert.equal(await core.stop(), 0);
  return seen;
}

for (const by of ["redir", "tproxy"] as const)
  test(
    `${by}: rows of DIRECT, a node and a group, by addresses and fake ones`,
    { skip, timeout: 240_000 },
    async () => {
      await using row = await openRow("rows");
      await capture(row, by);
      await using server = await startCore(SERVER, { prefix: row.origin.prefix });
      for (const target of ["DIRECT", "far", "choice"]) {
        const byMain = await shown(row, by, "always", target);
        assert.deepEqual(await shown(row, by, "off", target), byMain);
        if (target === "DIRECT") {
          const type = by === "redir" ? "Redir" : "TProxy";
          const [first] = byMain as readonly Connection[];
          const { metadata } = first as Connection;
          const { sourceIP, destinationIP, destinationPort, inboundPort, host } = metadata;
          assert.deepEqual(
            [metadata["type"], sourceIP, destinationIP, destinationPort, inboundPort, host],
            [type, "203.0.113.2", origin, "7", String(CAPTURES[by]), ""],
          );
        }
      }
      assert.equal(await server.stop(), 0);
    },
  );
