import assert from "node:assert/strict";
import { test } from "node:test";
import type { Datagram, DatagramFlow, Destination, Endpoint, Ip } from "#core/session.ts";
import { UdpClients } from "./udp-clients.ts";

const to: Destination = { host: null, ip: "192.0.2.1" as Ip, port: 53 };
const from = (port: number): Endpoint => ({ ip: "127.0.0.1" as Ip, port });
const item = (text: string): Datagram => ({ payload: Buffer.from(text), destination: to });

function table(maxSources: number, clock = { nowMs: 0 }) {
  const flows: DatagramFlow[] = [];
  const sent: string[] = [];
  const clients = new UdpClients(
    maxSources,
    (_source, flow) => void flows.push(flow),
    ({ payload }, { port }) => void sent.push(`${String(payload)} to ${port}`),
    () => clock.nowMs,
  );
  return { clients, flows, sent };
}

function collect(flow: DatagramFlow | undefined): string[] {
  const got: string[] = [];
  flow?.receive(({ payload }) => got.push(String(payload)));
  return got;
}

test("one flow a source; what comes before it is received waits", () => {
  const { clients, flows, sent } = table(8);
  clients.deliver(from(1), item("a"));
  clients.deliver(from(1), item("b"));
  clients.deliver(from(2), item("c"));
  assert.equal(flows.length, 2);
  const got = collect(flows[0]);
  clients.deliver(from(1), item("d"));
  assert.deepEqual(got, ["a", "b", "d"]);
  flows[1]?.send(item("answer"));
  assert.deepEqual(sent, ["answer to 2"]);
});

test("bounds: sources, and datagrams that wait", () => {
  const { clients, flows } = table(2);
  for (let port = 1; port <= 5; port++) clients.deliver(from(port), item("x"));
  assert.equal(flows.length, 2);
  for (let count = 0; count < 600; count++) clients.deliver(from(1), item("y"));
  assert.equal(collect(flows[0]).length, 512);
});

test("at the bound the source that is silent the longest gives way, in neither direction used for ten seconds", async () => {
  const clock = { nowMs: 0 };
  const { clients, flows } = table(3, clock);
  const [steady, asking, silent] = [from(1), from(2), from(3)];
  for (const source of [asking, silent, steady]) clients.deliver(source, item("x"));
  clock.nowMs = 9_000;
  clients.deliver(steady, item("x"));
  clock.nowMs = 9_999;
  clients.deliver(from(4), item("x"));
  assert.equal(flows.length, 3, "none was silent for so long");
  flows[0]?.send(item("an answer is a use, too"));
  clock.nowMs = 10_000;
  clients.deliver(from(4), item("x"));
  await flows[1]?.closed;
  assert.equal(flows.length, 4);
  clients.deliver(from(5), item("x"));
  assert.equal(flows.length, 4, "the others are in use");
  const got = [flows[0], flows[2], flows[3]].map(collect);
  for (const source of [asking, steady, from(4)]) clients.deliver(source, item("y"));
  assert.deepEqual(
    got.map((of) => of.at(-1)),
    ["y", "y", "y"],
  );
});

test("a source that alone sends for long is not silent", () => {
  const clock = { nowMs: 0 };
  const { clients, flows } = table(2, clock);
  clients.deliver(from(2), item("x"));
  const one = from(1);
  for (; clock.nowMs < 60_000; clock.nowMs += 500) clients.deliver(one, item("x"));
  clients.deliver(from(3), item("x")); // in the place of the second
  clients.deliver(from(4), item("x"));
  assert.equal(flows.length, 3);
  const got = collect(flows[1]);
  clients.deliver(one, item("still here"));
  assert.equal(got.at(-1), "still here");
});

test("a flow that is disposed of makes room; the end of the socket ends all", async () => {
  const { clients, flows, sent } = table(1);
  clients.deliver(from(1), item("a"));
  await flows[0]?.[Symbol.asyncDispose]();
  await flows[0]?.closed;
  flows[0]?.send(item("late"));
  clients.deliver(from(2), item("b"));
  assert.equal(flows.length, 2);
  clients.close();
  await flows[1]?.closed;
  assert.equal(clients.size, 0);
  assert.deepEqual(sent, []);
});
