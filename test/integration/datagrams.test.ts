import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import type { Outbound } from "#core/outbound.ts";
import type { Router } from "#core/router.ts";
import type { Datagram, DatagramFlow, Destination, Ip } from "#core/session.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { directOutbound } from "#protocols/direct/index.ts";
import { rejectDropOutbound, rejectOutbound } from "#protocols/reject/index.ts";
import { DatagramBudget, KEPT_BYTES } from "#dataplane/udp/limits.ts";
import type { DatagramLimits } from "#dataplane/udp/limits.ts";
import { serveDatagrams } from "#dataplane/udp/udp-session.ts";
import { LiveTable } from "#dataplane/connections.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";
import { UDP_IDLE_MS, UDP_SESSION_IDLE_MS } from "#dataplane/timeouts.ts";
import { watchLeaks } from "../support/leaks.ts";
import { decisionOf, metadataOf } from "../support/metadata.ts";
import { openUdpEcho } from "../support/origin.ts";
import { tableResolver } from "../support/resolvers.ts";
import { handSweep } from "../support/hand-sweep.ts";
import { until } from "../support/until.ts";
import { plainServeEnv } from "../support/serve-env.ts";

/** The inbound's side of a session, in memory. */
class ClientFlow implements DatagramFlow {
  readonly #end = Promise.withResolvers<void>();
  readonly closed = this.#end.promise;
  readonly received: Datagram[] = [];
  readonly refused: Destination[] = [];
  #on: (item: Datagram) => void = () => {};
  send(item: Datagram): void {
    this.received.push(item);
  }
  refuse(destination: Destination): void {
    this.refused.push(destination);
  }
  receive(on: (item: Datagram) => void): void {
    this.#on = on;
  }
  write(text: string, destination: Destination): void {
    this.#on({ payload: Buffer.from(text), destination });
  }
  async until(count: number): Promise<readonly Datagram[]> {
    while (this.received.length < count) await delay(1);
    return this.received;
  }
  [Symbol.asyncDispose](): Promise<void> {
    this.#end.resolve();
    return this.closed;
  }
}

const resolver = tableResolver({ "a.example": ["127.0.0.1"], "b.example": ["127.0.0.1"] });
const direct = directOutbound("DIRECT", openDirectDialer({ resolver }));

interface Setup {
  readonly outbound?: Outbound;
  readonly outboundFor?: (destination: Destination) => Outbound;
  /** What the router makes of a destination. */
  readonly becomes?: (destination: Destination) => Destination;
  readonly limits?: Partial<DatagramLimits>;
  readonly timers?: IdleTimers;
  readonly budget?: DatagramBudget;
  /** Of the client. */
  readonly source?: string;
}

/** Whether there is room for one more session of this source, at a time when all others were used just now. */
const hasRoom = (budget: DatagramBudget, ip: string): boolean =>
  budget.enter({ source: ip as Ip, usedAtMs: 0, expire() {} }, 0);

function start({
  outbound = direct,
  outboundFor,
  becomes = (same) => same,
  limits = {},
  timers = new IdleTimers(),
  budget = new DatagramBudget(limits),
  source = "127.0.0.1",
}: Setup = {}) {
  const flow = new ClientFlow();
  const live = new LiveTable();
  let routed = 0;
  const router: Router = {
    async route(metadata) {
      routed++;
      const chosen = outboundFor?.(metadata.destination) ?? outbound;
      return decisionOf(chosen, becomes(metadata.destination));
    },
  };
  const env = {
    ...plainServeEnv({ router, live, timers }),
    budget,
    idleMs: UDP_IDLE_MS,
    sessionIdleMs: UDP_SESSION_IDLE_MS,
  };
  const described = metadataOf({ host: null, ip: "192.0.2.1" as Ip, port: 1 }, "udp");
  const metadata = { ...described, source: { ...described.source, ip: source as Ip } };
  const done = serveDatagrams({ network: "udp", metadata, flow }, env);
  return { flow, live, done, budget, routed: () => routed };
}

const textOf = ({ payload }: Datagram): string => Buffer.from(payload).toString();

test("one path for all destinations of one outbound; each is decided once", async () => {
  const noLeaks = watchLeaks();
  {
    await using first = await openUdpEcho();
    await using second = await openUdpEcho();
    const { flow, live, done, routed } = start();
    for (const text of ["1", "2", "3"]) {
      flow.write(text, first.destination);
      flow.write(text, second.destination);
    }
    const replies = await flow.until(6);
    const of = ({ port }: Destination) =>
      replies.filter(({ destination }) => destination.port === port).map(textOf);
    assert.deepEqual(
      [of(first.destination), of(second.destination)],
      [
        ["1", "2", "3"],
        ["1", "2", "3"],
      ],
    );
    assert.equal(routed(), 2);
    assert.equal(live.size, 1);
    const [row] = [...live];
    assert.deepEqual([row?.uploadBytes, row?.downloadBytes], [6, 6]);
    await flow[Symbol.asyncDispose]();
    await done;
    assert.deepEqual([live.size, live.uploadTotalBytes], [0, 6]);
  }
  await noLeaks();
});

test("the client gets replies from the address that it wrote to, also when a name was dialled in its place", async () => {
  await using origin = await openUdpEcho();
  const fake = (last: number): Destination => ({
    host: null,
    ip: `198.18.0.${last}` as Ip,
    port: origin.port,
  });
  const { flow, live, done } = start({
    becomes: ({ ip, port }) => ({ host: ip?.endsWith("1") ? "a.example" : "b.example", ip: null, port }),
  });
  flow.write("to a", fake(1));
  flow.write("to b", fake(2)); // the same port and, in the end, the same peer: only separate paths tell them apart
  const replies = [...(await flow.until(2))].sort((x, y) => (textOf(x) < textOf(y) ? -1 : 1));
  assert.deepEqual(
    replies.map(({ destination }) => destination),
    [fake(1), fake(2)],
  );
  assert.equal(live.size, 2);
  await flow[Symbol.asyncDispose]();
  await done;
});

test("closing the row ends the path; the next datagram opens another", async () => {
  await using origin = await openUdpEcho();
  const { flow, live, done, routed } = start();
  flow.write("1", origin.destination);
  await flow.until(1);
  const [row] = [...live];
  row?.close();
  assert.equal(live.size, 0);
  flow.write("2", origin.destination);
  await flow.until(2);
  assert.equal(routed(), 2);
  assert.notEqual([...live][0]?.metadata.id, row?.metadata.id);
  await flow[Symbol.asyncDispose]();
  await done;
});

test("a rejected destination costs one decision, however many datagrams come", async () => {
  const { flow, live, done, routed } = start({ outbound: rejectOutbound("REJECT") });
  for (let n = 0; n < 50; n++) {
    flow.write("x", { host: "ads.example", ip: null, port: 443 });
    if (n % 10 === 0) await delay(1);
  }
  assert.equal(routed(), 1);
  assert.equal(live.size, 0);
  const told = flow.refused.length;
  assert.ok(told > 0, "the client is told");
  flow.write("x", { host: "ads.example", ip: null, port: 443 });
  assert.equal(flow.refused.length, told + 1, "also of what is dropped without asking the rules again");
  assert.equal(flow.refused[0]?.host, "ads.example");
  await flow[Symbol.asyncDispose]();
  await done;
});

test("REJECT-DROP swallows", async () => {
  const { flow, done, routed } = start({ outbound: rejectDropOutbound("REJECT-DROP") });
  flow.write("x", { host: "ads.example", ip: null, port: 443 });
  await until("it is decided", () => routed() === 1);
  await flow[Symbol.asyncDispose]();
  await done;
  assert.deepEqual([flow.received, flow.refused], [[], []]);
});

test("a dial that takes its time holds a bounded number of datagrams, in order", async () => {
  const opened = Promise.withResolvers<void>();
  const sent: string[] = [];
  const slow: Outbound = {
    ...direct,
    async associate() {
      await opened.promise;
      const end = Promise.withResolvers<void>();
      return {
        send: (item) => void sent.push(textOf(item)),
        receive() {},
        closed: end.promise,
        [Symbol.asyncDispose]: async () => end.resolve(),
      };
    },
  };
  const queuedBytes = 32 * (KEPT_BYTES + 1);
  const { flow, done, budget } = start({ outbound: slow, limits: { queuedBytes } });
  const to: Destination = { host: "a.example", ip: null, port: 9 };
  for (let n = 0; n < 200; n++) flow.write(`${n % 10}`, to);
  await delay(1);
  for (let n = 0; n < 200; n++) flow.write("x", to);
  opened.resolve();
  await until("they are sent", () => sent.length > 0, { everyMs: 1 });
  assert.equal(sent.length, 32);
  assert.equal(sent.join("").slice(0, 12), "012345678901");
  assert.ok(budget.queue(queuedBytes), "all bytes are given back");
  await flow[Symbol.asyncDispose]();
  await done;
});

test("bounds: paths of a session, sessions of a source", async () => {
  await using one = await openUdpEcho();
  await using two = await openUdpEcho();
  const { flow, live, done, budget } = start({
    limits: { branchesPerSession: 1, sessionsPerSource: 1 },
    becomes: (destination) => ({
      host: destination.port === one.port ? "a.example" : "b.example",
      ip: null,
      port: 7,
    }),
  });
  const fake = (port: number): Destination => ({ host: null, ip: "198.18.0.1" as Ip, port });
  flow.write("x", fake(one.port));
  flow.write("x", fake(two.port));
  await delay(5);
  assert.equal(live.size, 1);
  assert.ok(!hasRoom(budget, "127.0.0.1"), "this source has its one session");
  await flow[Symbol.asyncDispose]();
  await done;
  assert.ok(hasRoom(budget, "127.0.0.1"));
});

for (const [what, limits, other] of [
  ["of all", { sessions: 2 }, "192.0.2.9"],
  ["of one source", { sessionsPerSource: 2 }, "127.0.0.1"],
] as const)
  test(`at the bound ${what} the session that was silent longest gives way, whichever way it was used last`, async () => {
    const { timers, advance } = handSweep();
    const budget = new DatagramBudget(limits);
    await using origin = await openUdpEcho();
    let reply: (item: Datagram) => void = () => {};
    const answers: Outbound = {
      ...direct,
      associate: async () => ({
        send() {},
        receive: (on) => void (reply = on),
        closed: new Promise(() => {}),
        async [Symbol.asyncDispose]() {},
      }),
    };
    const [first, second] = [
      start({ timers, budget, outbound: answers }),
      start({ timers, budget, outbound: direct }),
    ];
    first.flow.write("x", origin.destination);
    second.flow.write("x", origin.destination);
    await second.flow.until(1);
    advance(9_000);
    const early = start({ timers, budget, source: other });
    await early.flow.closed; // all have spoken lately
    reply({ payload: Buffer.from("y"), destination: origin.destination });
    advance(2_000);
    const late = start({ timers, budget, source: other });
    await second.flow.closed;
    assert.deepEqual([first.live.size, second.live.size], [1, 0]);
    late.flow.write("x", origin.destination);
    await late.flow.until(1);
    for (const { flow, done } of [first, late]) {
      await flow[Symbol.asyncDispose]();
      await done;
    }
    assert.ok(hasRoom(budget, other) && hasRoom(budget, other), "each has left once");
    assert.ok(!hasRoom(budget, other));
  });

test("silence ends a path, then the session", async () => {
  const { timers, advance } = handSweep();
  await using origin = await openUdpEcho();
  const { flow, live, done } = start({ timers });
  flow.write("x", origin.destination);
  await flow.until(1);
  advance(59_000);
  assert.equal(live.size, 1);
  advance(2_000);
  assert.equal(live.size, 0);
  advance(301_000);
  await done;
  await flow.closed;
});

/** Opens after a while or fails; answers, stays silent, ends by itself, or breaks its promises. */
function moody(name: string, mood: number): Outbound {
  return {
    ...direct,
    name,
    async associate(destination, { signal }) {
      if (mood % 2 === 1) await delay(1);
      signal.throwIfAborted();
      if (mood === 0) throw new Error("no way out");
      const end = Promise.withResolvers<void>();
      let answer: (item: Datagram) => void = () => {};
      return {
        send(item) {
          if (mood === 1) throw new Error("a bug in an outbound");
          if (mood === 2) end.resolve();
          if (mood > 3) answer({ payload: item.payload, destination });
        },
        receive: (on) => void (answer = on),
        closed: end.promise,
        [Symbol.asyncDispose]: () => (mood === 5 ? Promise.reject(new Error("stuck")) : Promise.resolve()),
      };
    },
  };
}

test("whatever outbounds and clients do, nothing is thrown and every bound is given back", async () => {
  const limits = { sessions: 1, sessionsPerSource: 1, branches: 3, branchesPerSession: 2 };
  const bounds = { ...limits, destinationsPerSession: 4, queuedBytes: 3 * KEPT_BYTES };
  const outbounds = Array.from({ length: 6 }, (_, mood) => moody(`mood ${mood}`, mood));
  const step = fc.record({
    to: fc.integer({ min: 0, max: 11 }),
    size: fc.integer({ min: 0, max: 40 }),
    next: fc.constantFrom("go on", "go on", "wait", "close all", "close the client"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { flow, live, done, budget } = start({
        limits: bounds,
        outboundFor: ({ port }) => outbounds[port % 6] as Outbound,
      });
      for (const { to, size, next } of steps) {
        const host = to % 2 === 0 ? "a.example" : null;
        const ip = host === null ? ("198.18.0.1" as Ip) : null;
        flow.write("x".repeat(size), { host, ip, port: 1_000 + to });
        assert.ok(live.size <= 2);
        if (next === "wait") await delay(2);
        if (next === "close all") live.closeAll();
        if (next === "close the client") await flow[Symbol.asyncDispose]();
      }
      await flow[Symbol.asyncDispose]();
      await done;
      await delay(3); // dials that were under way
      assert.equal(live.size, 0);
      assert.ok(hasRoom(budget, "192.0.2.7"), "the session");
      for (let n = 0; n < 3; n++) assert.ok(budget.takeBranch(), "the paths");
      assert.ok(budget.queue(3 * KEPT_BYTES), "the bytes");
    }),
    { numRuns: 60 },
  );
});
