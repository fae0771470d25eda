/** What was answered for one client of a worker serves others that ask for the same, and nothing of them is lost. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import type { WorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import type { WorkerConnection, DialEvents, CachedRoute } from "#core/accepted.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import { byWorkers } from "../support/accepted.ts";
import { readAll } from "../support/client.ts";
import { echo, openTcpOrigin, type Origin } from "../support/origin.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { until } from "../support/until.ts";
import { WorkerKiller } from "../support/worker-killer.ts";
import { tlsLibrary } from "../support/tls.ts";

const skip = process.platform === "linux" ? false : "SKIP cached routes: needs Linux";
const NO_BYTES = Buffer.alloc(0);

interface Passed {
  readonly port: number;
  readonly bytes: readonly [number, number];
}

/** A listener whose clients are led to the origin, and what is reported of them. */
class CountedListener implements AsyncDisposable {
  readonly asked: WorkerConnection[] = [];
  readonly passed: Passed[] = [];
  readonly joined: WorkerConnection[] = [];
  /** Of joined ones. */
  ended = 0;
  over = 0;
  failed = 0;
  deaths = 0;
  /** Where to, as clients are told from now on. */
  originPort = 0;
  /** Every piece is asked for, and others have to ask. */
  limited = false;
  readonly #owned: AsyncDisposableStack;
  readonly #engine: WorkerBackend;
  readonly port: number;

  constructor(engine: WorkerBackend, port: number, owned: AsyncDisposableStack) {
    this.#engine = engine;
    this.port = port;
    this.#owned = owned;
  }

  static async open(origin: Origin): Promise<CountedListener> {
    await using opened = new AsyncDisposableStack();
    let listener: CountedListener | null = null;
    const on = (client: WorkerConnection): void => listener?.answer(client);
    const onDeath = (): void => void (listener as CountedListener).deaths++;
    const engine = opened.use(await openWorkerBackend({ tlsLibrary, threads: 1, onDeath }));
    const pool = new SocketPool();
    const where = { ip: LOOPBACK_V4, port: 0, owner: "test" };
    const lease = opened.use(await pool.leaseTcp(where, byWorkers(on)));
    pool.useThreads(engine.accepting);
    lease.activate();
    listener = new CountedListener(engine, lease.endpoint.port, opened.move());
    listener.originPort = origin.port;
    return listener;
  }

  answer(client: WorkerConnection): void {
    this.asked.push(client);
    client.events = this.#watch(() => {});
    const route: CachedRoute = {
      served: (source, up, down) => void this.passed.push({ port: source.port, bytes: [up, down] }),
      joined: (found) => {
        this.joined.push(found);
        found.events = this.#watch(() => this.ended++);
      },
      released: () => void this.over++,
    };
    const way: DialPlan = {
      ip: LOOPBACK_V4,
      port: this.originPort,
      routingMark: 0,
      interfaceName: "",
      probes: { idleMs: 60_000, intervalMs: 15_000 },
      timeoutMs: 10_000,
      isFirstOfMany: false,
    };
    client.dial(way, NO_BYTES, this.limited, this.limited ? null : route);
  }

  #watch(onEnded: () => void): DialEvents {
    return {
      dialled() {},
      failed: () => void this.failed++,
      ended: onEnded,
    };
  }

  sync(): void {
    this.#engine.syncRouteCache();
  }

  withdraw(): void {
    this.#engine.invalidateRoutes();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync();
  }
}

/** Says four bytes, reads them again and ends; answers with its own port. */
async function visit(port: number): Promise<number> {
  const socket = await arrive(port);
  const { localPort } = socket;
  socket.end();
  await readAll(socket);
  return localPort as number;
}

async function arrive(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => {});
  socket.write("ping");
  await once(socket, "readable");
  assert.equal(String(socket.read()), "ping");
  return socket;
}

const closeOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => void socket.once("close", () => resolve()));

test("equal requests use the cached route, and each is reported with its byte counts", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using listener = await CountedListener.open(origin);
  const ports: number[] = [];
  for (let round = 0; round < 50; round++)
    ports.push(...(await Promise.all(Array.from({ length: 4 }, () => visit(listener.port)))));
  await until("events of all", () => listener.asked.length + listener.passed.length === ports.length);
  assert.ok(listener.passed.length > 0, "one of them used the cached route");
  for (const { bytes } of listener.passed) assert.deepEqual(bytes, [4, 4]);
  const told = [
    ...listener.asked.map(({ source }) => source.port),
    ...listener.passed.map(({ port }) => port),
  ];
  assert.equal(told.length, ports.length);
  assert.deepEqual(new Set(told), new Set(ports));
  listener.withdraw();
  await until("the end of all answers", () => listener.over === listener.asked.length);
  await visit(listener.port);
  assert.ok(listener.asked.length > 0 && listener.passed.length + listener.asked.length === ports.length + 1);
});

/** A client that uses a cached route and stays: others ask until one need not. */
async function stay(listener: CountedListener): Promise<Socket> {
  for (;;) {
    const before = listener.asked.length;
    const socket = await arrive(listener.port);
    if (listener.asked.length === before) return socket;
    socket.destroy();
  }
}

test("one that stays is found, and is like any other from then on", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using listener = await CountedListener.open(origin);
  const socket = await stay(listener);
  listener.sync();
  const found = listener.joined.find(({ source }) => source.port === socket.localPort) as WorkerConnection;
  assert.equal(found.local.port, listener.port);
  assert.equal(found.dialledFrom()?.ip, "127.0.0.1");
  const before = listener.joined.length;
  listener.sync();
  assert.equal(listener.joined.length, before, "none is reported twice");
  const reset = closeOf(socket);
  found.reset();
  await reset;
  await until("its end", () => listener.ended > 0);
  const { localPort } = socket;
  assert.ok(!listener.passed.some(({ port }) => port === localPort), "its end is reported once");
});

test("no connection by a cached route is limited because another one was", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using listener = await CountedListener.open(origin);
  listener.limited = true;
  let left = 8;
  for (let count = left; count > 0; count--) connect(listener.port, "127.0.0.1").on("error", () => {}); // each by a slot of its own
  await until("all of them", () => listener.asked.length === 8);
  for (const client of listener.asked) {
    client.events = { dialled() {}, failed() {}, ended: () => left-- };
    client.reset();
  }
  await until("their ends", () => left === 0);
  listener.limited = false;
  (await stay(listener)).destroy(); // by one of those slots; it is answered
});

test("a route that is withdrawn serves no new request, and its connections are known", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using listener = await CountedListener.open(origin);
  for (let round = 0; round < 20; round++) {
    const socket = await stay(listener);
    listener.withdraw();
    assert.ok(listener.joined.some(({ source }) => source.port === socket.localPort));
    const before = listener.asked.length;
    const next = await arrive(listener.port);
    assert.equal(listener.asked.length, before + 1);
    socket.destroy();
    next.destroy();
  }
});

test("where a dial fails the main thread is asked after all", { skip }, async () => {
  const origin = await openTcpOrigin(echo);
  await using listener = await CountedListener.open(origin);
  (await stay(listener)).destroy();
  const before = listener.asked.length;
  await origin[Symbol.asyncDispose]();
  const socket = connect(listener.port, "127.0.0.1").on("error", () => {});
  await until("a dial that fails", () => listener.failed === 1);
  assert.equal(listener.asked.length, before + 1);
  assert.equal(listener.asked.at(-1)?.source.port, socket.localPort);
  socket.destroy();
});

test("a request that has to ask after all is dialled by the new decision", { skip }, async () => {
  const first = await openTcpOrigin(echo);
  await using other = await openTcpOrigin(echo);
  await using listener = await CountedListener.open(first);
  (await stay(listener)).destroy();
  await first[Symbol.asyncDispose]();
  listener.originPort = other.port;
  const before = listener.asked.length;
  await visit(listener.port);
  assert.equal(listener.asked.length, before + 1);
  assert.equal(listener.failed, 0);
});

test("a worker that dies leaves no connection and no route behind", { skip }, async () => {
  using killer = new WorkerKiller();
  await using origin = await openTcpOrigin(echo);
  await using listener = await CountedListener.open(origin);
  const socket = await stay(listener);
  const { localPort } = socket;
  const closed = closeOf(socket);
  await killer.kill("relay");
  await closed;
  await until("the thread's end", () => listener.deaths === 1);
  assert.ok(listener.joined.some(({ source }) => source.port === localPort));
  assert.equal(listener.over, listener.asked.length);
});

const config = (origin: number): string => `
external-controller: 127.0.0.1:0
listeners:
  - { name: tunnel, type: tunnel, listen: 127.0.0.1, port: 0, network: [tcp], target: "127.0.0.1:${origin}" }
proxy-groups:
  - { name: choice, type: select, proxies: [DIRECT, REJECT] }
rules:
  - DOMAIN,unknown.test,REJECT
  - MATCH,choice
`;

const request = async (core: Core, method: string, path: string, body: unknown): Promise<void> => {
  const url = `http://127.0.0.1:${await core.controllerPort()}${path}`;
  const answer = await fetch(url, { method, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
};

const get = async <T>(core: Core, path: string): Promise<T> =>
  (await (await fetch(`http://127.0.0.1:${await core.controllerPort()}${path}`)).json()) as T;

test("a choice, a mode and a rule that is switched off hold for the very next client", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using core = await startCore(config(origin.port));
  const port = await core.port("tunnel");
  const isServed = async (): Promise<boolean> => {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    socket.write("ping");
    const chunk = await Promise.race([
      once(socket, "data").then(([data]) => data as unknown),
      closeOf(socket),
    ]);
    socket.destroy();
    return Buffer.isBuffer(chunk);
  };
  for (let round = 0; round < 5; round++) {
    for (let count = 0; count < 8; count++) assert.equal(await isServed(), true);
    await request(core, "PUT", "/proxies/choice", { name: "REJECT" });
    assert.equal(await isServed(), false);
    await request(core, "PATCH", "/configs", { mode: "direct" });
    for (let count = 0; count < 4; count++) assert.equal(await isServed(), true);
    await request(core, "PATCH", "/configs", { mode: "rule" });
    assert.equal(await isServed(), false);
    await request(core, "PATCH", "/rules/disable", { 1: true }); // nothing matches: DIRECT
    for (let count = 0; count < 4; count++) assert.equal(await isServed(), true);
    await request(core, "PATCH", "/rules/disable", { 1: false });
    assert.equal(await isServed(), false);
    await request(core, "PUT", "/proxies/choice", { name: "DIRECT" });
  }
});

const MIXED = `
listeners:
  - { name: mixed, type: mixed, listen: 127.0.0.1, port: 0 }
rules:
  - MATCH,DIRECT
`;

test("a handshake equal to an earlier one is compared byte by byte", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using core = await startCore(MIXED);
  const port = await core.port("mixed");
  const to = Buffer.from([5, 1, 0, 1, 127, 0, 0, 1, origin.port >> 8, origin.port & 255]);
  const answers = async (parts: readonly Uint8Array[], isIt: (text: string) => boolean): Promise<Socket> => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    for (const part of parts) {
      const before = text.length;
      socket.write(part);
      if (part !== parts.at(-1)) await until("an answer to a part", () => text.length > before);
    }
    await until("its answer", () => isIt(text));
    return socket;
  };
  const greeted = Buffer.from([5, 0, 5, 0]).toString("latin1");
  const welcome = (text: string): boolean => text.startsWith(greeted) && text.length === 12;
  const early = (text: string): boolean => text.endsWith("early");
  const connected = (text: string): boolean => text.startsWith("HTTP/1.1 200 ") && text.endsWith("\r\n\r\n");
  const head = `CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\nHost: 127.0.0.1:${origin.port}\r\n\r\n`;
  for (let round = 0; round < 3; round++) {
    const sockets = [
      await answers([Buffer.from([5, 1, 0]), to], welcome),
      await answers([Buffer.from([5, 3, 1, 0, 2]), to], welcome),
      await answers([Buffer.concat([Buffer.from([5, 1, 0]), to])], welcome),
      await answers([Buffer.from([5, 1, 0]), Buffer.concat([to, Buffer.from("early")])], early),
      await answers([Buffer.from(head)], connected),
      await answers([Buffer.from(`${head}early`)], early),
    ];
    for (const socket of sockets) {
      const reply = once(socket, "data");
      socket.write("ping");
      assert.deepEqual(await reply, [Buffer.from("ping")]);
      socket.destroy();
    }
    // In the place of a greeting the same bytes are one, with something behind it that is no request.
    const unknownClient = connect(port, "127.0.0.1");
    unknownClient.end(to);
    assert.deepEqual(await readAll(unknownClient), Buffer.from([5, 0]));
  }
});

interface Rows {
  readonly uploadTotal: number;
  readonly downloadTotal: number;
  readonly connections: readonly {
    readonly id: string;
    readonly metadata: { readonly sourcePort: string };
  }[];
}

test("lines, totals, counters of rules and rows are those of every client", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using core = await startCore(config(origin.port));
  const port = await core.port("tunnel");
  const ports: number[] = [];
  for (let count = 0; count < 100; count++) ports.push(await visit(port));
  const socket = await arrive(port);
  const rows = await get<Rows>(core, "/connections");
  assert.deepEqual(
    rows.connections.map(({ metadata }) => metadata.sourcePort),
    [`${socket.localPort}`],
  );
  await until("all totals", async () => {
    const { uploadTotal, downloadTotal } = await get<Rows>(core, "/connections");
    return uploadTotal === 404 && downloadTotal === 404;
  });
  const { rules } = await get<{ rules: readonly { extra: { hitCount: number; missCount: number } }[] }>(
    core,
    "/rules",
  );
  assert.deepEqual([rules[1]?.extra.hitCount, rules[0]?.extra.missCount], [101, 101]);
  for (const one of [...ports, socket.localPort])
    await core.shows(new RegExp(`127.0.0.1:${one} --> .* match Match`));
  const closed = closeOf(socket);
  await fetch(`http://127.0.0.1:${await core.controllerPort()}/connections/${rows.connections[0]?.id}`, {
    method: "DELETE",
  });
  await closed;
  assert.equal(await core.stop(), 0);
});
