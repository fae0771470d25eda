/** The portal in the real program: who is sent there, what is shown, and a portal that cannot be opened. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { say } from "../support/raw-client.ts";
import { startGoverned, statusOf, type GovernedCore } from "../support/governed-core.ts";
import { openTcpOrigin } from "../support/origin.ts";

const QUOTA = `
  enabled: true
  portal: { listen: 127.0.0.1:0 }
  devices:
    - { id: phone, name: My phone, source-cidrs: [127.0.0.0/8], quota: { total-bytes: 1000, window: 1h } }
`;

const getPolicies = (governed: GovernedCore) =>
  governed.call<{ revision: number; config: object }>("GET", "traffic-control/policies");

/** Other policies, and a portal on a port in use. */
async function putOccupied(governed: GovernedCore) {
  await using taken = await openTcpOrigin(() => {});
  const { revision, config } = (await getPolicies(governed)).body;
  const other = { ...config, portal: { listen: `127.0.0.1:${taken.port}` }, devices: [] };
  return await governed.call("PUT", "traffic-control/policies", { revision, config: other });
}

test("a new plain-HTTP connection over quota is led to the portal, which says why; nothing of it is counted; §11.6 the link outlives a PUT that fails", async (t) => {
  const web = createServer((_, response) => response.end("the page"));
  const address = `127.${80 + (process.pid % 100)}.${process.pid % 251}.80`;
  try {
    web.listen(80, address);
    await once(web, "listening");
  } catch (error) {
    return t.skip(`SKIP portal redirect: port 80 cannot be bound: ${String(error)}`);
  }
  t.after(() => web.close());
  await using governed = await startGoverned(QUOTA);
  const get = () =>
    say(governed.mixed, `GET http://${address}/ HTTP/1.1\r\nHost: ${address}\r\nConnection: close\r\n\r\n`);
  assert.match(await get(), /^HTTP\/1\.1 200 .*the page$/s);
  await governed.transfer(100, 5000);
  const before = await statusOf(governed, "phone");
  assert.equal(before.over_quota, true);
  const answer = await get();
  assert.match(answer, /^HTTP\/1\.1 302 .*cache-control: no-store/is);
  const location = /location: (\S+)/i.exec(answer)?.[1] ?? "";
  const page = await fetch(location, { headers: { "accept-language": "zh" } });
  assert.equal(page.status, 200);
  assert.equal(page.headers.get("cache-control"), "no-store, max-age=0");
  assert.match(await page.text(), /流量配额已用完.*My phone/s);
  assert.equal((await fetch(location.replace("s=", "s=A"))).status, 403);
  assert.match(await (await fetch(new URL("/me", location))).text(), /My phone/);
  assert.equal((await putOccupied(governed)).status, 500);
  assert.equal((await fetch(location)).status, 200);
  const after = await statusOf(governed, "phone");
  assert.equal(after.counters.download_bytes, before.counters.download_bytes);
  assert.equal(await governed.transfer(100, 100), 100, "other ports go on");
  await governed.call("POST", "traffic-control/policies/phone/reset");
  assert.equal((await fetch(location)).status, 410);
  assert.match(await get(), /^HTTP\/1\.1 200 /);
});

test("§11.6 a portal port that is taken: 500, and revision, policies, counters and portal stay", async () => {
  await using governed = await startGoverned(QUOTA);
  await governed.transfer(100, 500);
  const { body } = await getPolicies(governed);
  assert.equal((await putOccupied(governed)).status, 500);
  assert.deepEqual((await getPolicies(governed)).body, body);
  assert.equal((await statusOf(governed, "phone")).counters.download_bytes, 500);
});

test("half a header is cut off within seconds", { timeout: 40_000 }, async () => {
  await using governed = await startGoverned(QUOTA);
  const [, port] = await governed.core.shows(/portal: http:\S+:(\d+)/);
  const startedAtMs = performance.now();
  const socket = connect(Number(port), "127.0.0.1").resume();
  socket.on("error", () => {}).write("GET /me HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  await new Promise((resolve) => socket.once("close", resolve));
  const tookMs = performance.now() - startedAtMs;
  assert.ok(tookMs > 4_000 && tookMs < 20_000, `${tookMs} ms`); // five seconds; the runtime alone looks after thirty
});
