/** Listeners with a fixed target: a worker decides as soon as it has accepted, before the client has said anything. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { ANY_V4, LOOPBACK_V4 } from "#net/address/ip.ts";
import { DecidingEngine } from "../support/deciding-engine.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP tunnel decisions: needs Linux";

const open = (port: number): Socket =>
  connect({ port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => {});

/** Says four bytes; true: has them back. */
async function exchange(socket: Socket): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<string>();
  socket.once("data", (bytes) => resolve(String(bytes))).once("close", () => resolve(""));
  socket.end("ping");
  const back = await promise;
  socket.destroy();
  return back === "ping";
}

/** Of a client that comes now: has the main thread been asked for it? Then it is closed. */
async function isAsked(engine: DecidingEngine): Promise<boolean> {
  const before = engine.asked.length;
  const isServed = await exchange(open(engine.port));
  assert.equal(engine.asked.length, before + (isServed ? 0 : 1));
  return !isServed;
}

async function untilDecided(engine: DecidingEngine): Promise<void> {
  while (await isAsked(engine));
}

test("a tunnel's connections are decided alone, each reported once", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  const destination = { ip: LOOPBACK_V4, port: origin.port };
  await using engine = await DecidingEngine.open(2, destination);
  await untilDecided(engine);
  engine.change([{ is: "always" }]);
  await until("a version that all workers have", () => engine.dropped.length > 0);
  const asked = engine.asked.length;
  const ports = new Set<number>();
  for (let round = 0; round < 10; round++) {
    const sockets = Array.from({ length: 8 }, () => open(engine.port));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    for (const { localPort } of sockets) ports.add(localPort as number);
    assert.deepEqual(new Set(await Promise.all(sockets.map(exchange))), new Set([true]));
  }
  const ofThem = () => engine.served.filter(({ metadata }) => ports.has(metadata.source.port));
  await until("the events of all", () => ofThem().length >= ports.size);
  assert.equal(engine.asked.length, asked, "the main thread is asked for none");
  const seen = ofThem();
  assert.deepEqual(
    seen.map(({ metadata }) => metadata.source.port).toSorted((one, other) => one - other),
    [...ports].toSorted((one, other) => one - other),
    "each once",
  );
  for (const { metadata, found, uploadBytes, downloadBytes } of seen) {
    assert.deepEqual([uploadBytes, downloadBytes], [4, 4]);
    assert.deepEqual([found.list, found.position, found.end, found.target], [-1, 0, 0, 0]);
    assert.deepEqual(metadata.destination, { host: null, ...destination });
    const { type, name, user, local } = metadata.inbound;
    assert.deepEqual([type, name, user, local.port], ["Tunnel", "in", null, engine.port]);
  }
});

test("behind a change, and while decisions are held back, each is asked for", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using engine = await DecidingEngine.open(2, { ip: LOOPBACK_V4, port: origin.port });
  for (let round = 0; round < 5; round++) {
    await untilDecided(engine);
    const socket = open(engine.port);
    socket.write("ping");
    await once(socket, "data");
    engine.change(null);
    assert.ok(engine.joined.some(({ metadata }) => metadata.source.port === socket.localPort));
    assert.equal(await isAsked(engine), true);
    engine.change([{ is: "always" }]);
    await untilDecided(engine);
    engine.hold(true);
    assert.equal(await isAsked(engine), true);
    engine.hold(false);
    socket.destroy();
  }
});

test("one whose target cannot be dialled is asked for", { skip }, async () => {
  const origin = await openTcpOrigin(echo, ANY_V4);
  await using engine = await DecidingEngine.open(1, { ip: LOOPBACK_V4, port: origin.port });
  await untilDecided(engine);
  await origin[Symbol.asyncDispose]();
  for (let count = 0; count < 20; count++) assert.equal(await isAsked(engine), true);
});

test("a name, and a port of our own, are left to the main thread", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using named = await DecidingEngine.open(1, null);
  await using own = await DecidingEngine.open(1, { ip: LOOPBACK_V4, port: origin.port });
  await untilDecided(own);
  own.ownPorts = new Set([origin.port]);
  for (const engine of [named, own]) {
    const { length } = engine.dropped;
    await until("the first version", () => engine.version > 0);
    engine.change([{ is: "always" }]);
    await until("a version that the worker has", () => engine.dropped.length > length);
    for (let count = 0; count < 20; count++) assert.equal(await isAsked(engine), true);
  }
});

/** What the program says of a connection through a tunnel: the row of the live table, the line of the log, the rule's count. */
async function told(relay: string, originPort: number): Promise<unknown> {
  await using core = await startCore(
    `relay: ${relay}\nworkers: 1\nlog-level: info\nexternal-controller: 127.0.0.1:0\nlisteners:\n  - { name: way, type: tunnel, listen: 127.0.0.1, port: 0, network: [tcp], target: "127.0.0.1:${originPort}" }\nrules: ["DST-PORT,${originPort},DIRECT", "MATCH,REJECT"]\n`,
  );
  const [port, controller] = [await core.port("way"), await core.controllerPort()];
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${controller}${path}`)).json();
  for (let count = 0; count < 20; count++) assert.equal(await exchange(open(port)), true);
  const socket = open(port);
  socket.write("ping");
  await once(socket, "data");
  const { localPort } = socket;
  const { connections } = (await ask("/connections")) as { connections: Row[] };
  const row = connections.find(({ metadata }) => metadata["sourcePort"] === `${localPort}`);
  const { id: _, start: __, metadata, ...rest } = row ?? assert.fail("no row");
  const { sourcePort: ___, inboundPort, ...facts } = metadata;
  assert.equal(inboundPort, `${port}`);
  socket.destroy();
  const [line] = await core.shows(new RegExp(`msg="[^"]*127\\.0\\.0\\.1:${localPort} [^"]*"`));
  const { rules } = (await ask("/rules")) as { rules: { extra: { hitCount: number } }[] };
  const totals = (await ask("/connections")) as { uploadTotal: number; downloadTotal: number };
  return {
    rest,
    facts,
    line: line.replace(`:${localPort}`, ":PORT"),
    hits: rules.map(({ extra }) => extra.hitCount),
    totals: [totals.uploadTotal, totals.downloadTotal],
  };
}

interface Row {
  readonly id: string;
  readonly start: string;
  readonly metadata: Readonly<Record<string, string>>;
}

test("rows, log, counts and totals are those of the event loop", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  const [by, without] = [await told("auto", origin.port), await told("portable", origin.port)];
  assert.deepEqual(by, without);
});
