/** Workers that decide by themselves: each connection is reported once, with its bytes, and by the version in force. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { DecidingEngine } from "../support/deciding-engine.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import { ANY_V4, LOOPBACK_V4 } from "#net/address/ip.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { until } from "../support/until.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

const skip = process.platform === "linux" ? false : "SKIP worker decisions: needs Linux";

/** A SOCKS5 client; null: its connection was closed before the answer. */
async function visit(port: number, host: string, originPort: number): Promise<Socket | null> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => {});
  const address = host.split(".").map(Number);
  socket.write(Buffer.of(5, 1, 0, 5, 1, 0, 1, ...address, originPort >> 8, originPort & 255));
  let read = 0;
  while (read < 12) {
    const chunk = await new Promise<Buffer | null>((resolve) => {
      socket.once("data", resolve).once("close", () => resolve(null));
    });
    if (chunk === null) return null;
    read += chunk.length;
  }
  return socket;
}

/** Says four bytes, has them back, ends. */
async function exchange(socket: Socket): Promise<number> {
  const { localPort } = socket;
  socket.end("ping");
  await once(socket, "end");
  socket.destroy();
  return localPort as number;
}

const closeOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => void socket.once("close", () => resolve()));

/** Until workers have taken the present version. */
async function untilDecided(engine: DecidingEngine, originPort: number): Promise<Socket> {
  for (;;) {
    const before = engine.asked.length;
    const socket = await visit(engine.port, "127.0.0.1", originPort);
    if (socket !== null && engine.asked.length === before) return socket;
    socket?.destroy();
  }
}

test("what a worker decides is reported once, with the rule, both ends and its bytes", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using engine = await DecidingEngine.open(2);
  await until("the first version", () => engine.version > 0);
  engine.change([{ is: "always" }]);
  await until("a version that all workers have", () => engine.dropped.length > 0);
  const asked = engine.asked.length;
  const ports: number[] = [];
  for (let round = 0; round < 40; round++) {
    const made = await Promise.all(
      Array.from({ length: 4 }, (_, at) => visit(engine.port, `127.0.${round}.${at + 1}`, origin.port)),
    );
    for (const socket of made) ports.push(await exchange(socket ?? assert.fail("a client was asked for")));
  }
  await until("the events of all", () => engine.served.length === 160);
  assert.equal(engine.asked.length, asked);
  const seen = engine.served;
  assert.deepEqual(new Set(seen.map(({ metadata }) => metadata.source.port)), new Set(ports));
  for (const { metadata, found, uploadBytes, downloadBytes } of seen) {
    assert.deepEqual([uploadBytes, downloadBytes], [4, 4]);
    assert.deepEqual([found.list, found.position, found.end, found.target], [-1, 0, 0, 0]);
    assert.match(metadata.destination.ip ?? "", /^127\.0\.\d+\.[1-4]$/);
    assert.deepEqual([metadata.destination.port, metadata.inbound.local.port], [origin.port, engine.port]);
    assert.deepEqual(
      [metadata.inbound.type, metadata.inbound.name, metadata.source.ip],
      ["Socks5", "in", "127.0.0.1"],
    );
  }
});

test("one that stays is found, and is like any other from then on", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using engine = await DecidingEngine.open(1);
  const socket = await untilDecided(engine, origin.port);
  engine.join();
  engine.join();
  const all = engine.joined.filter(({ metadata }) => metadata.source.port === socket.localPort);
  assert.equal(all.length, 1, "it is joined once");
  const { localPort } = socket;
  const [{ worker }] = all as [(typeof all)[number]];
  assert.equal(worker.dialledFrom()?.ip, "127.0.0.1");
  const closed = closeOf(socket);
  worker.reset();
  await closed;
  await until("its end", () => engine.ended === 1);
  assert.ok(!engine.served.some(({ metadata }) => metadata.source.port === localPort));
});

test("what the tables cannot tell, and what cannot be dialled, is asked", { skip }, async () => {
  const origin = await openTcpOrigin(echo, ANY_V4);
  await using engine = await DecidingEngine.open(1);
  (await untilDecided(engine, origin.port)).destroy();
  const { port } = origin;
  await origin[Symbol.asyncDispose]();
  const before = engine.asked.length;
  assert.equal(await visit(engine.port, "127.0.0.1", port), null);
  assert.equal(engine.asked.length, before + 1);
  engine.change([{ is: "program", part: "name", test: "equals", text: "curl" }, { is: "always" }]);
  await until("the version before is given up", () => engine.dropped.length > 0);
  for (let count = 0; count < 20; count++) assert.equal(await visit(engine.port, "127.0.0.1", port), null);
  assert.equal(engine.asked.length, before + 21);
});

const planTo = (port: number): DialPlan => ({
  ip: LOOPBACK_V4,
  port,
  routingMark: 0,
  interfaceName: "",
  probes: null,
  timeoutMs: 5_000,
  isFirstOfMany: false,
});

test("one whose dial fails is dialled as the main thread then says", { skip }, async () => {
  const first = await openTcpOrigin(echo, ANY_V4);
  await using other = await openTcpOrigin(echo);
  await using engine = await DecidingEngine.open(1);
  (await untilDecided(engine, first.port)).destroy();
  await first[Symbol.asyncDispose]();
  const before = engine.asked.length;
  engine.answer = (client) => {
    client.events = { dialled() {}, failed: (error) => assert.fail(error ?? "not opened"), ended() {} };
    client.dial(planTo(other.port), Buffer.of(5, 0, 0, 1, 0, 0, 0, 0, 0, 0), false);
  };
  await exchange((await visit(engine.port, "127.0.0.1", first.port)) ?? assert.fail("it is closed"));
  assert.equal(engine.asked.length, before + 1);
});

test("behind a change the very next one is asked, and those of before are known", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using engine = await DecidingEngine.open(2);
  for (let round = 0; round < 20; round++) {
    const socket = await untilDecided(engine, origin.port);
    engine.change(null);
    assert.ok(engine.joined.some(({ metadata }) => metadata.source.port === socket.localPort));
    const before = engine.asked.length;
    assert.equal(await visit(engine.port, "127.0.0.1", origin.port), null);
    assert.equal(engine.asked.length, before + 1);
    socket.destroy();
    engine.change([{ is: "always" }]);
  }
});

test("rules are handed over where they have changed, and else not", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using engine = await DecidingEngine.open(2);
  (await untilDecided(engine, origin.port)).destroy();
  const { version } = engine;
  engine.change([{ is: "unknown" }], true);
  await until("another version", () => engine.version > version);
  for (let count = 0; count < 20; count++) await exchange(await untilDecided(engine, origin.port));
  await until("one by the rules of before", () => engine.served.some((one) => one.version > version));
  engine.change([{ is: "unknown" }]);
  engine.change([{ is: "unknown" }], true); // what has changed is not forgotten
  const { length } = engine.dropped;
  await until("another version", () => engine.dropped.length > length);
  for (let count = 0; count < 20; count++)
    assert.equal(await visit(engine.port, "127.0.0.1", origin.port), null);
});

test("decisions that are held back go on by the same version", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using engine = await DecidingEngine.open(2);
  (await untilDecided(engine, origin.port)).destroy();
  for (let round = 0; round < 20; round++) {
    const { version } = engine;
    engine.hold(true);
    const before = engine.asked.length;
    assert.equal(await visit(engine.port, "127.0.0.1", origin.port), null);
    engine.hold(false);
    const socket = await untilDecided(engine, origin.port);
    assert.deepEqual([engine.asked.length, engine.version], [before + 1, version]);
    socket.destroy();
  }
});

test("none that is decided is limited because another one in its slot was", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using engine = await DecidingEngine.open(1);
  (await untilDecided(engine, origin.port)).destroy();
  engine.hold(true);
  let [held, left] = [0, 8];
  engine.answer = (client) => {
    client.events = { dialled: () => held++, failed() {}, ended: () => left-- };
    client.dial(planTo(origin.port), Buffer.of(5, 0, 0, 1, 0, 0, 0, 0, 0, 0), true);
  };
  const limited = await Promise.all(
    Array.from({ length: left }, () => visit(engine.port, "127.0.0.1", origin.port)),
  );
  await until("each in a slot of its own", () => held === 8);
  for (const client of engine.asked.slice(-8)) client.reset();
  await until("their ends", () => left === 0);
  for (const socket of limited) socket?.destroy();
  engine.hold(false);
  for (let count = 0; count < 8; count++) await exchange(await untilDecided(engine, origin.port));
});

test("every spelling of a request is decided, with what is behind it", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using engine = await DecidingEngine.open(2);
  (await untilDecided(engine, origin.port)).destroy();
  const [high, low] = [origin.port >> 8, origin.port & 255];
  const to = Buffer.of(5, 1, 0, 1, 127, 0, 0, 1, high, low);
  const head = `CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\nHost: 127.0.0.1:${origin.port}\r\n\r\n`;
  const welcome = RegExp(`^${String.fromCharCode(5, 0, 5, 0, 0, 1, 127, 0, 0, 1)}[^]{2}$`);
  const known: readonly (readonly [parts: readonly Buffer[], answer: RegExp, type: string])[] = [
    [[Buffer.of(5, 1, 0), to], welcome, "Socks5"],
    [[Buffer.of(5, 3, 1, 0, 2), to], welcome, "Socks5"],
    [[Buffer.concat([Buffer.of(5, 1, 0), to])], welcome, "Socks5"],
    [[Buffer.of(5, 1, 0), Buffer.concat([to, Buffer.from("early")])], /early$/, "Socks5"],
    [[Buffer.of(4, 1, high, low, 127, 0, 0, 1, 0)], /^[^]Z[^]{6}$/, "Socks4"],
    [[Buffer.from(head)], /^HTTP\/1\.1 200 [^]*\r\n\r\n$/, "HTTPS"],
    [[Buffer.from(`${head}early`)], /early$/, "HTTPS"],
  ];
  const before = engine.asked.length;
  for (const [parts, answer, type] of known) {
    const socket = connect({ port: engine.port, host: "127.0.0.1", allowHalfOpen: true });
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    for (const part of parts) {
      const { length } = text;
      socket.write(part);
      if (part !== parts.at(-1)) await until("an answer to a part", () => text.length > length);
    }
    await until("its answer", () => answer.test(text));
    socket.write("ping");
    await until("what it says", () => text.endsWith("ping"));
    const { localPort } = socket;
    socket.destroy();
    await until(
      "its report",
      () =>
        engine.served.find(({ metadata }) => metadata.source.port === localPort)?.metadata.inbound.type ===
        type,
    );
  }
  assert.equal(engine.asked.length, before);
});

test("versions that no worker has any more are dropped, at the latest in the end", { skip }, async () => {
  const engine = await DecidingEngine.open(2);
  for (let round = 0; round < 20; round++) {
    engine.change([{ is: "always" }]);
    await new Promise((resolve) => setTimeout(resolve, 8));
  }
  await until("all but the last", () => engine.dropped.length === engine.version - 1);
  engine.change(null);
  await until("the last", () => engine.dropped.length === engine.version);
  engine.change([{ is: "always" }]);
  await until("another", () => engine.version > engine.dropped.length);
  engine.stop();
  assert.equal(engine.dropped.length, engine.version);
  await engine[Symbol.asyncDispose]();
});

test("a worker that dies leaves no connection and no version behind", { skip }, async () => {
  using killer = new WorkerKiller();
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using engine = await DecidingEngine.open(1);
  const socket = await untilDecided(engine, origin.port);
  const { localPort } = socket;
  const closed = closeOf(socket);
  await killer.kill("relay");
  await closed;
  await until("its end", () => engine.deaths === 1);
  assert.ok(engine.joined.some(({ metadata }) => metadata.source.port === localPort));
  engine.change(null);
  await until("all versions", () => engine.dropped.length === engine.version);
});
