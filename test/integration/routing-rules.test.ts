/** Rules and groups in the running program, by what reaches the nodes that they name. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { freePorts } from "../support/free-ports.ts";
import { openRecordingSocks } from "../support/recording-socks.ts";
import { socksAssociate, socksConnect } from "../support/socks-client.ts";
import { startCore } from "../support/start-core.ts";
import { DATABASE } from "../fuzz/decoders/lookups.ts";
import { always, openScripted } from "./dns-kit.ts";

/** The node that a TCP connection reaches, by its greeting of one letter. */
async function reached(proxyPort: number, host: string): Promise<string> {
  const { client, status } = await socksConnect(proxyPort, host, 80);
  using _client = client;
  return status === 0 ? (await client.read(1)).toString() : `refused ${status}`;
}

async function sendDatagram(proxyPort: number, host: string): Promise<void> {
  using udp = await socksAssociate(proxyPort);
  udp.send(Buffer.from("question"), host, 53);
  await udp.next();
}

test("PASS, PASS-RULE, look-ups from left to right, disable-udp of every kind of group", async () => {
  await using a = await openRecordingSocks("A");
  await using b = await openRecordingSocks("B");
  await using c = await openRecordingSocks("C");
  await using server = await openScripted(always("192.0.2.1"));
  const [mixed] = (await freePorts(1)) as [number];
  const groups = ["select", "url-test", "fallback", "load-balance"];
  const groupText = groups
    .map((type) => `{ name: ${type}-group, type: ${type}, proxies: [A], disable-udp: true, interval: 0 }`)
    .join(", ");
  await using _core = await startCore(`
mixed-port: ${mixed}
dns: { enable: true, nameserver: [127.0.0.1:${server.port}] }
proxies:
  - { name: A, type: socks5, server: 127.0.0.1, port: ${a.port}, udp: true }
  - { name: B, type: socks5, server: 127.0.0.1, port: ${b.port}, udp: true }
  - { name: C, type: socks5, server: 127.0.0.1, port: ${c.port}, udp: true }
  - { name: NO-UDP, type: socks5, server: 127.0.0.1, port: ${a.port} }
proxy-groups: [${groupText}]
sub-rules:
  outer:
    - SUB-RULE,(DOMAIN-SUFFIX,deep.sub.test),inner
    - DOMAIN,pass.sub.test,PASS
    - DOMAIN,line.sub.test,PASS-RULE
    - DOMAIN,udp.sub.test,NO-UDP
    - DOMAIN-SUFFIX,sub.test,A
  inner: ["DOMAIN,pass.deep.sub.test,PASS", "DOMAIN,line.deep.sub.test,PASS-RULE"]
rules:
  - SUB-RULE,(DOMAIN-SUFFIX,sub.test),outer
${groups.map((type) => `  - DOMAIN,${type}.test,${type}-group`).join("\n")}
  - AND,((IP-CIDR,10.0.0.0/8),(DOMAIN,never.test)),REJECT
  - IP-CIDR,192.0.2.0/24,C,no-resolve
  - MATCH,B
`);
  const rows: readonly (readonly [host: string, node: string])[] = [
    ["pass.sub.test", "C"], // the AND has looked, so the address is known
    ["line.sub.test", "A"],
    ["pass.deep.sub.test", "C"],
    ["line.deep.sub.test", "A"],
    ["198.51.100.7", "B"],
    ...groups.map((type) => [`${type}.test`, "A"] as const),
  ];
  for (const [host, node] of rows) assert.equal(await reached(mixed, host), node, host);
  const asked = [a, b, c].map((node) => node.asked);
  for (const list of asked) list.length = 0;
  const handedOn = [...groups.map((type) => `${type}.test`), "udp.sub.test"];
  for (const host of [...handedOn, "198.51.100.7"]) await sendDatagram(mixed, host);
  assert.deepEqual(asked, [[], ["udp 198.51.100.7:53"], handedOn.map((host) => `udp ${host}:53`)]);
});

test("GET /connections shows what rules looked up that did not decide", async () => {
  await using node = await openRecordingSocks("N");
  const [mixed] = (await freePorts(1)) as [number];
  await using core = await startCore(
    `
mixed-port: ${mixed}
external-controller: 127.0.0.1:0
secret: s
proxies: [{ name: N, type: socks5, server: 127.0.0.1, port: ${node.port} }]
rules: ["SRC-GEOIP,cn,REJECT", "GEOIP,cn,REJECT", "IP-ASN,1,REJECT", "MATCH,N"]
`,
    {
      seed(home) {
        for (const name of ["geoip.metadb", "ASN.mmdb"]) writeFileSync(join(home, name), DATABASE);
      },
    },
  );
  const api = `http://127.0.0.1:${await core.controllerPort()}`;
  const { client } = await socksConnect(mixed, "1.1.1.1", 80);
  using _client = client;
  await client.read(1);
  const answer = await fetch(`${api}/connections`, { headers: { authorization: "Bearer s" } });
  const { connections } = (await answer.json()) as {
    connections: readonly { rule: string; metadata: Record<string, unknown> }[];
  };
  const [{ rule, metadata } = assert.fail("no connection")] = connections;
  const { sourceGeoIP, destinationGeoIP, sourceIPASN, destinationIPASN } = metadata;
  assert.deepEqual(
    { rule, sourceGeoIP, destinationGeoIP, sourceIPASN, destinationIPASN },
    {
      rule: "Match",
      sourceGeoIP: ["xx"],
      destinationGeoIP: ["xx"],
      sourceIPASN: "",
      destinationIPASN: "65000",
    },
  );
});
