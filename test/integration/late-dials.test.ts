/** Nodes whose server answers late: what fails behind the dial counts against the node. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { freePorts } from "../support/free-ports.ts";
import { openHysteria2Server } from "../support/hysteria2-server.ts";
import { openRawClient } from "../support/raw-client.ts";
import { startCore } from "../support/start-core.ts";
import { openTuicServer, TUIC_PASSWORD, TUIC_UUID } from "../support/tuic-server.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const REFUSED = Buffer.from("01026e6f00", "hex");

test("refused streams of hysteria2 and tuic have a group test its members", { skip: SKIP }, async () => {
  await using hysteria2 = await openHysteria2Server(REFUSED);
  await using tuic = await openTuicServer(true);
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  const group =
    "type: fallback, url: 'http://origin.test/', interval: 0, timeout: 60000, max-failed-times: 2";
  await using _core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
proxies:
  - { name: hy, type: hysteria2, server: 127.0.0.1, port: ${hysteria2.port}, password: p, skip-cert-verify: true }
  - { name: tu, type: tuic, server: 127.0.0.1, port: ${tuic.port}, uuid: ${TUIC_UUID}, password: ${TUIC_PASSWORD}, skip-cert-verify: true }
proxy-groups:
  - { name: H, proxies: [hy], ${group} }
  - { name: T, proxies: [tu], ${group} }
rules: ["DOMAIN,hy.test,H", "DOMAIN,tu.test,T", "MATCH,REJECT"]
`);
  const historyOf = async (name: string) => {
    const answer = await fetch(`http://127.0.0.1:${controller}/proxies/${name}`);
    return ((await answer.json()) as { history: readonly unknown[] }).history.length;
  };
  for (const [host, node] of [
    ["hy.test", "hy"],
    ["tu.test", "tu"],
  ] as const) {
    for (let dials = 0; dials < 2; dials++) {
      assert.equal(await historyOf(node), 0, `${node} was tested after ${dials} failures`);
      using client = await openRawClient(mixed);
      client.send(`CONNECT ${host}:80 HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      await client.until("200");
      client.send("hello");
      await client.rest();
    }
    await until(`a test of ${node}`, async () => (await historyOf(node)) > 0);
  }
});
