import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import type { Ip } from "#core/session.ts";
import type { Resolver } from "#core/resolver.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { familyOf, LOOPBACK_V4 } from "#net/address/ip.ts";
import { inbox, readAll } from "../support/client.ts";
import { watchLeaks } from "../support/leaks.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { literalsOnly, tableResolver } from "../support/resolvers.ts";
import { until } from "../support/until.ts";

const context = () => ({ signal: new AbortController().signal, metadata: null });
const LOOPBACK_V6 = "::1" as Ip;
const hasV6 = Object.values(networkInterfaces()).some((list) =>
  list?.some(({ address }) => address === "::1"),
);
const needsV6 = hasV6 ? {} : { skip: "SKIP direct IPv6: this machine has no ::1" };

// 127.0.0.2 answers like any other address of lo: nothing listens there, so it refuses.
const resolver = tableResolver({
  "later.example": ["127.0.0.2", "127.0.0.1"],
  "never.example": ["127.0.0.2", "127.0.0.3"],
  "here.example": ["127.0.0.1"],
});

test("an address that refuses gives way to the next, one by one or all at once", async () => {
  const noLeaks = watchLeaks();
  for (const tcpConcurrent of [false, true]) {
    await using origin = await openTcpOrigin(echo);
    const dialer = openDirectDialer({ resolver, tcpConcurrent });
    const to = { host: "later.example", ip: null, port: origin.port };
    const stream = (await dialer.connect(to, context())) as Socket;
    assert.equal(stream.remoteAddress, "127.0.0.1");
    stream.end("x");
    assert.equal((await readAll(stream)).toString(), "x");
    stream.destroy();
    const never = dialer.connect({ ...to, host: "never.example" }, context());
    await assert.rejects(never, { name: "DialError", reason: "refused" });
  }
  await noLeaks();
});

test("failures say why", async () => {
  const dialer = openDirectDialer({ resolver });
  const unresolved = dialer.connect({ host: "unknown.example", ip: null, port: 1 }, context());
  await assert.rejects(unresolved, { name: "DialError", reason: "resolve" });
});

/** Listens with the shortest queue and never accepts: the kernel drops what comes once the queue is full. */
const DEAF = `
  const { createServer } = require("node:net");
  const { parentPort } = require("node:worker_threads");
  const server = createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;

test("a handshake that is not answered ends in time", async () => {
  const worker = new Worker(DEAF, { eval: true });
  const [port] = (await once(worker, "message")) as [number];
  const dialer = openDirectDialer({ resolver, connectTimeoutMs: 100 });
  const dials = Array.from({ length: 8 }, () =>
    dialer.connect({ host: null, ip: LOOPBACK_V4, port }, context()),
  );
  const results = await Promise.allSettled(dials);
  const reasons = results.map((result) => (result.status === "fulfilled" ? "" : result.reason.reason));
  for (const result of results) if (result.status === "fulfilled") result.value.destroy();
  await worker.terminate();
  assert.equal(reasons.at(-1), "timeout", `${reasons}`);
});

test("IPv6, and IPv6 switched off", needsV6, async () => {
  await using origin = await openTcpOrigin(echo, LOOPBACK_V6);
  const stream = await openDirectDialer({ resolver: literalsOnly }).connect(origin.destination, context());
  stream.end("six");
  assert.equal((await readAll(stream)).toString(), "six");
  stream.destroy();
  const off = openDirectDialer({ resolver: literalsOnly, ipv6: false });
  await assert.rejects(off.connect(origin.destination, context()), { reason: "unreachable" });
  await using flow = await off.associate(origin.destination, context());
  flow.send({ payload: Buffer.from("x"), destination: origin.destination }); // dropped
});

test("one flow speaks both families and takes replies from any address", needsV6, async () => {
  const noLeaks = watchLeaks();
  {
    await using four = await openUdpEcho();
    await using six = await openUdpEcho(LOOPBACK_V6);
    await using flow = await openDirectDialer({ resolver }).associate(four.destination, context());
    const box = inbox(flow);
    for (const { destination } of [four, six]) {
      flow.send({ payload: Buffer.from("x"), destination });
      const reply = await box.next();
      assert.equal(familyOf(reply.destination.ip as Ip), familyOf(destination.ip as Ip));
    }
  }
  await noLeaks();
});

test("datagrams to a name wait for its address, as many as one read brings, and it is asked for once", async () => {
  await using origin = await openUdpEcho();
  const answered = Promise.withResolvers<void>();
  const asked: string[] = [];
  const slow: Resolver = {
    async lookup(host, options) {
      asked.push(host);
      await answered.promise;
      return resolver.lookup(host, options);
    },
  };
  await using flow = await openDirectDialer({ resolver: slow }).associate(origin.destination, context());
  const received: string[] = [];
  flow.receive(({ payload, destination }) => {
    assert.deepEqual(destination, { host: "here.example", ip: "127.0.0.1", port: origin.port });
    received.push(Buffer.from(payload).toString());
  });
  const destination = { host: "here.example", ip: null, port: origin.port };
  for (let n = 0; n < 64; n++) flow.send({ payload: Buffer.from(`${n}`), destination });
  for (let n = 0; n < 10; n++)
    flow.send({ payload: Buffer.from("lost"), destination: { ...destination, host: "x.example" } });
  answered.resolve();
  await until("those that were held are back", () => received.length >= 64);
  assert.deepEqual(
    received,
    Array.from({ length: 64 }, (_, n) => `${n}`),
  );
  flow.send({ payload: Buffer.from("again"), destination });
  await until("one more is back", () => received.length >= 65);
  assert.deepEqual(asked, ["here.example", "x.example"]);
});

test("a socket that fails after the handshake does not end the process", async () => {
  const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
  await using origin = await openTcpOrigin(resolve);
  const stream = await openDirectDialer({ resolver }).connect(origin.destination, context());
  (await accepted).resetAndDestroy();
  const closed = new Promise((done) => void stream.once("close", done));
  stream.resume(); // it has no listener for its error
  await closed;
});
