/** What the real program keeps of connections that have ended: which they were, where they went, and why they are no more. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

interface Ended {
  readonly id: string;
  readonly metadata: { readonly host: string; readonly destinationPort: string };
  readonly chains: readonly string[];
  readonly rule: string;
  readonly upload: number;
  readonly download: number;
  readonly start: string;
  readonly end: string;
  readonly reason: string;
  readonly detail: string;
}

async function tunnel(port: number, host: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  socket.write(`CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await once(socket, "data");
  return socket;
}

/** By a reset or not: gone is gone. */
const goneOf = (socket: Socket): Promise<void> =>
  new Promise((done) => void socket.resume().once("close", () => done()));

test("connections that have ended are there with way, bytes and reason, those of workers included", async () => {
  const [mixed, controller, unheard] = (await freePorts(3)) as [number, number, number];
  await using origin = await openTcpOrigin(echo);
  const base = `http://127.0.0.1:${controller}`;
  await using core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
hosts: { "+.test": 127.0.0.1 }
rules: ["DOMAIN,bad.test,REJECT", "MATCH,DIRECT"]
`);
  const ended = async (): Promise<readonly Ended[]> => {
    const answer = await fetch(`${base}/api/svc/connections/ended`);
    return ((await answer.json()) as { readonly connections: readonly Ended[] }).connections;
  };
  const of = async (host: string): Promise<Ended> => {
    const find = async () => (await ended()).find(({ metadata }) => metadata.host === host);
    await until(`${host} among those that have ended`, async () => (await find()) !== undefined);
    const found = await find();
    assert.ok(found !== undefined);
    return found;
  };

  const over = await tunnel(mixed, `over.test:${origin.port}`);
  over.end("hello");
  await goneOf(over);
  const closed = await tunnel(mixed, `closed.test:${origin.port}`);
  await fetch(`${base}/connections`, { method: "DELETE" });
  await goneOf(closed);
  (await tunnel(mixed, "bad.test:443")).destroy();
  (await tunnel(mixed, `unheard.test:${unheard}`)).destroy();

  const one = await of("over.test");
  assert.deepEqual(
    [one.reason, one.detail, one.chains, one.rule, one.upload, one.download],
    ["over", "", ["DIRECT"], "Match", 5, 5],
  );
  assert.equal(one.metadata.destinationPort, String(origin.port));
  assert.ok(Date.parse(one.end) >= Date.parse(one.start));
  assert.equal((await of("closed.test")).reason, "closed");
  assert.deepEqual([(await of("bad.test")).reason, (await of("bad.test")).chains], ["rejected", ["REJECT"]]);
  const refused = await of("unheard.test");
  assert.equal(refused.reason, "not-dialled");
  assert.match(refused.detail, /refused/i);
  assert.deepEqual(
    (await ended()).map(({ end }) => end),
    (await ended()).map(({ end }) => end).toSorted((a, b) => b.localeCompare(a)),
    "the newest first",
  );

  for (let at = 0; at < 1100; at++) {
    const burst = await tunnel(mixed, `127.0.0.1:${origin.port}`);
    burst.end("x");
    await goneOf(burst);
  }
  await until("a bounded number is kept", async () => {
    const all = await ended();
    return all.length === 1000 && all.every(({ metadata }) => metadata.host === "");
  });
  assert.equal(new Set((await ended()).map(({ id }) => id)).size, 1000);
  await core.stop();
});
