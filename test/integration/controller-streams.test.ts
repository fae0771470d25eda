/** WebSockets and newline-delimited JSON on real sockets. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import {
  connect as connectHttp2,
  constants,
  createServer as createHttp2Server,
  type Http2ServerResponse,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { WebSocket, type ClientOptions } from "ws";
import { ConnectionsWriter } from "#api/controller/connections-json.ts";
import { CONTROLLER_OWNER } from "#core/access.ts";
import type { Call } from "#api/route.ts";
import { Subscribers, type Subscriber } from "#api/subscriber.ts";
import { takeUpgrade, type Upgrades } from "#api/upgrade.ts";
import { MemoryControl } from "../support/memory-control.ts";
import { liveController, type LiveController } from "../support/live-controller.ts";
import { RawClient } from "../support/raw-http.ts";

const SECRET = "s3 cret/ü";
const TOKEN = encodeURIComponent(SECRET);

class Client implements Disposable {
  readonly socket: WebSocket;
  readonly #records: string[] = [];
  #wake = () => {};

  constructor(live: LiveController, path: string, options: ClientOptions = {}) {
    this.socket = new WebSocket(`ws://127.0.0.1:${live.port}${path}`, options);
    this.socket.on("message", (data: Buffer, isBinary) => {
      assert.equal(isBinary, false);
      this.#records.push(data.toString());
      this.#wake();
    });
  }

  async next<T>(): Promise<T> {
    while (this.#records.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    return JSON.parse(this.#records.shift() as string) as T;
  }

  [Symbol.dispose](): void {
    this.socket.on("error", () => {}); // ended on purpose, perhaps while it was still connecting
    this.socket.terminate();
  }
}

/** The status with which a handshake was refused; 101 where it was not. */
async function handshake(
  live: LiveController,
  path: string,
  headers: Record<string, string> = {},
): Promise<number> {
  const socket = new WebSocket(`ws://127.0.0.1:${live.port}${path}`, { headers });
  const { promise, resolve } = Promise.withResolvers<number>();
  socket.on("unexpected-response", (_, response) => resolve(response.statusCode ?? 0));
  socket.on("open", () => resolve(101));
  socket.on("error", () => {}); // follows a refusal
  return promise.finally(() => socket.terminate());
}

const STREAMS = ["/traffic", "/memory", "/logs", "/connections"];

test("controller-api.md §15.1 the token alone decides where there is one; an empty or missing one leaves it to the header", async () => {
  await using live = await liveController({ secret: SECRET });
  const good = { authorization: `Bearer ${Buffer.from(SECRET).toString("latin1")}` };
  for (const path of STREAMS) {
    assert.equal(await handshake(live, `${path}?token=${TOKEN}`), 101, path);
    assert.equal(await handshake(live, `${path}?token=${TOKEN}`, { authorization: "Bearer wrong" }), 101);
    assert.equal(await handshake(live, `${path}?token=wrong`, good), 401);
    assert.equal(await handshake(live, `${path}?token=`, good), 101);
    assert.equal(await handshake(live, `${path}?`, good), 101);
    for (const query of ["", "?token=", "?token=wrong"])
      assert.equal(await handshake(live, path + query), 401);
    assert.equal((await fetch(`${live.url}${path}?token=${TOKEN}`)).status, 401);
  }
  assert.equal(await handshake(live, `/configs?token=${TOKEN}`), 401);
  assert.equal(await handshake(live, "/nowhere"), 404);
});

test("controller-api.md §15.1 without a secret every token and header passes", async () => {
  await using live = await liveController();
  assert.equal(await handshake(live, "/traffic?token="), 101);
  assert.equal(await handshake(live, "/traffic?token=whatever", { authorization: "Bearer " }), 101);
});

test("controller-api.md §15.8 §15.9 what is wrong with the question is said before the upgrade", async () => {
  await using live = await liveController();
  for (const path of [
    "/logs?level=trace",
    "/logs?level=",
    ...["0", "-5", "x", "1e9", "99999999999"].map((it) => `/connections?interval=${it}`),
  ]) {
    assert.equal(await handshake(live, path), 400, path);
  }
  assert.equal(await handshake(live, "/logs?level=debug&format=structured"), 101);
  assert.equal((await fetch(`${live.url}/connections?interval=x`)).status, 200);
});

test("a foreign page gets 403 where origins are restricted; our own page and listed ones are served", async () => {
  const cors = { allowOrigins: ["https://panel.example"], allowPrivateNetwork: true };
  await using live = await liveController({ cors });
  const from = (origin: string) => handshake(live, "/traffic", { origin });
  assert.equal(await from("https://evil.example"), 403);
  assert.equal(await from("null"), 403);
  assert.equal(await from("https://panel.example"), 101);
  assert.equal(await from(live.url), 101);
  assert.equal(await handshake(live, "/traffic", { origin: "http://127.0.0.1", host: "127.0.0.1:80" }), 101);
  assert.equal(await from(`http://127.0.0.1:1`), 403);
  assert.equal(await handshake(live, "/traffic", { host: "evil.example" }), 403);
});

test("handshakes that RFC 6455 forbids are refused", async () => {
  await using live = await liveController();
  const upgrade = "GET /traffic HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
  for (const rest of [
    "Sec-WebSocket-Version: 13\r\n",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
    "Sec-WebSocket-Key: short\r\nSec-WebSocket-Version: 13\r\n",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 8\r\n",
  ]) {
    using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
    client.send(`${upgrade}${rest}\r\n`);
    await client.closed();
    assert.match(client.received, /^HTTP\/1\.1 4\d\d /);
  }
});

test("controller-api.md §15.9 §15.10 traffic after a second, memory begins with 0, totals never fall", async () => {
  await using live = await liveController();
  using traffic = new Client(live, "/traffic?token=");
  using memory = new Client(live, "/memory");
  await once(traffic.socket, "open");
  live.control.uploadTotal += 500;
  const first = await traffic.next<{ up: number; down: number; upTotal: number; downTotal: number }>();
  assert.deepEqual([first.upTotal, first.downTotal, first.down], [1500, 2000, 0]);
  assert.ok(first.up > 0 && first.up <= 500);
  assert.deepEqual(await memory.next(), { inuse: 0, oslimit: 0 });
  assert.deepEqual(await memory.next(), { inuse: 41_943_040, oslimit: 0 });
  const second = await traffic.next<{ up: number; upTotal: number }>();
  assert.ok(second.upTotal >= first.upTotal && second.up === 0);
});

test("controller-api.md §15.9 the first snapshot of connections comes at once, the next after the interval", async () => {
  await using live = await liveController();
  live.control.connect("example.com");
  using client = new Client(live, "/connections?interval=60&token=");
  type Shot = { connections: { id: string }[] };
  assert.equal((await client.next<Shot>()).connections.length, 1);
  live.control.live.clear();
  for (let shots = 0; shots < 50; shots++) if ((await client.next<Shot>()).connections.length === 0) return;
  assert.fail("the snapshots never changed");
});

test("logs: the subscriber's level filters, both forms, and leaving ends the watch", async () => {
  await using live = await liveController();
  using warnings = new Client(live, "/logs?level=warning&format=structured");
  using everything = new Client(live, "/logs?level=debug");
  await Promise.all([once(warnings.socket, "open"), once(everything.socket, "open")]);
  live.control.emit("debug", "[DNS] a");
  live.control.emit("warning", "[TCP] dial");
  const { time, ...rest } = await warnings.next<{ time: string }>();
  assert.match(time, /^\d\d:\d\d:\d\d$/);
  assert.deepEqual(rest, { level: "warn", message: "[TCP] dial", fields: [] });
  assert.deepEqual(await everything.next(), { type: "debug", payload: "[DNS] a" });
  assert.deepEqual(await everything.next(), { type: "warning", payload: "[TCP] dial" });
  everything.socket.close();
  await once(everything.socket, "close");
  while (live.control.watcherCount > 1) await setImmediate();
});

test("a plain GET streams newline-delimited JSON until the client leaves", async () => {
  await using live = await liveController();
  const leave = new AbortController();
  const answer = await fetch(`${live.url}/logs?level=info`, {
    signal: leave.signal,
    headers: { origin: "https://a.example" },
  });
  assert.equal(answer.headers.get("content-type"), "application/json");
  assert.equal(answer.headers.get("access-control-allow-origin"), "*");
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  for (const text of ["one", "two"]) {
    live.control.emit("info", text);
    const { value } = await reader.read();
    assert.equal(Buffer.from(value as Uint8Array).toString(), `{"type":"info","payload":"${text}"}\n`);
  }
  leave.abort();
  while (live.control.watcherCount > 0) await setImmediate();
});

test("client frames are ignored, pings answered, closing is noticed, nonsense costs only that connection", async () => {
  await using live = await liveController();
  using good = new Client(live, "/logs");
  using bad = new Client(live, "/logs");
  await Promise.all([once(good.socket, "open"), once(bad.socket, "open")]);
  good.socket.send("hello?");
  good.socket.ping("x");
  await once(good.socket, "pong");
  bad.socket.on("error", () => {}); // it is about to lose its connection
  bad.socket.send("x".repeat(100_000));
  await once(bad.socket, "close");
  live.control.emit("info", "still here");
  assert.deepEqual(await good.next(), { type: "info", payload: "still here" });
});

for (const form of ["a WebSocket", "a plain GET"]) {
  test(`${form} that never reads loses its own records only, and the rest goes on`, async () => {
    await using live = await liveController();
    using reader = new Client(live, "/logs");
    await once(reader.socket, "open");
    using stuck = await RawClient.open({ host: "127.0.0.1", port: live.port });
    const upgrade =
      form === "a WebSocket"
        ? "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
        : "";
    stuck.send(`GET /logs HTTP/1.1\r\nHost: 127.0.0.1\r\n${upgrade}\r\n`);
    await stuck.until(/HTTP\/1\.1 (101|200) /);
    stuck.socket.pause();
    const text = "y".repeat(10_000);
    const total = 3000; // 30 MB, far beyond what the kernel buffers for one socket
    for (let at = 0; at < total; at++) {
      live.control.emit("info", `${at} ${text}`);
      const { payload } = await reader.next<{ payload: string }>();
      assert.ok(payload.startsWith(`${at} `));
    }
    stuck.received = "";
    stuck.socket.resume();
    while (!stuck.received.slice(-1000).includes("resumed")) {
      live.control.emit("info", "resumed");
      await reader.next();
    }
    // what waited for it: our queue, and the buffers of the kernel at both ends (up to 10 MB on Linux)
    assert.ok(stuck.received.length < 15_000_000, `${stuck.received.length} bytes were kept`);
    assert.equal(live.control.watcherCount, 2);
  });
}

test("5,000 sessions: a subscriber that does not read gets no further snapshot made", async () => {
  await using live = await liveController();
  for (let at = 0; at < 5000; at++) live.control.connect(`host-${at}.example`);
  const answer = (await (await fetch(`${live.url}/connections`)).json()) as { connections: unknown[] };
  assert.equal(answer.connections.length, 5000);
  let made = 0;
  const real = { ...live.control.connections };
  Object.assign(live.control.connections, { entries: () => (made++, real.entries()) });
  using stuck = await RawClient.open({ host: "127.0.0.1", port: live.port });
  stuck.send(
    "GET /connections?interval=50 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  await stuck.until(/HTTP\/1\.1 101 /);
  stuck.socket.pause();
  while (made === 0) await setImmediate();
  const before = made;
  using other = new Client(live, "/traffic"); // two seconds of its pace are forty intervals of the stuck one
  await other.next();
  await other.next();
  assert.ok(made - before <= 3, `${made - before} snapshots`); // what the kernel's buffers still took
});

for (const kind of ["records", "documents in parts"] as const)
  test(`${kind}: at most 2 MiB wait for a WebSocket that never reads, and it gets whole messages in the end`, async () => {
    const subscribers = new Subscribers();
    const opened = Promise.withResolvers<Subscriber>();
    const upgrades: Upgrades = new WeakMap();
    const server = createServer();
    const serve = (request: IncomingMessage): void => {
      const reply = { hijack() {} } as Call["reply"];
      const call = { upgrade: upgrades.get(request) ?? null, caller: CONTROLLER_OWNER, reply } as Call;
      opened.resolve(subscribers.add(call) as Subscriber);
    };
    server.on("upgrade", takeUpgrade(upgrades, serve)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const subscriber = await opened.promise;
    await once(client, "open");
    client.pause();
    const control = new MemoryControl();
    for (let at = 0; at < 5000; at++) control.connect(`host-${at}.example`);
    const writer = new ConnectionsWriter(control);
    const line = JSON.stringify({ type: "info", payload: "y".repeat(16_384) });
    const offer = () => (kind === "records" ? subscriber.send(line) : subscriber.sendParts(writer.parts()));
    let mostBytes = 0;
    for (let at = 0; at < 1000; at++) {
      offer();
      mostBytes = Math.max(mostBytes, subscriber.queuedBytes);
      if (at % 100 === 0) await setImmediate(); // the kernel takes what its buffers hold
    }
    assert.equal(offer(), false);
    assert.ok(mostBytes > 100_000 && mostBytes <= 2 * 1_048_576, `${mostBytes} bytes`);
    client.resume();
    const [message] = (await once(client, "message")) as [Buffer];
    const said = JSON.parse(message.toString()) as { payload?: string; connections?: unknown[] };
    assert.ok(said.payload?.length === 16_384 || said.connections?.length === 5000);
    client.terminate();
    subscribers[Symbol.dispose]();
    server.close();
  });

test("over HTTP/2, too, a subscriber that has gone already gets an error", async () => {
  const server = createHttp2Server().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const asking = client.request({ ":path": "/logs" });
  const [, response] = (await once(server, "request")) as [unknown, Http2ServerResponse];
  const closed = once(response.stream, "close");
  asking.close(constants.NGHTTP2_CANCEL);
  await closed;
  const subscribers = new Subscribers();
  const reply = { hijack() {}, raw: response as unknown, getHeaders: () => ({}) } as Call["reply"];
  const subscriber = subscribers.add({
    upgrade: null,
    caller: CONTROLLER_OWNER,
    reply,
  } as Call) as Subscriber;
  let told = 0;
  subscriber.onClose(() => told++);
  assert.equal(told, 1);
  assert.equal(subscriber.send("{}"), false);
  client.destroy();
  server.close();
});

test("a fault of the core ends the stream that met it, nothing else", async () => {
  await using live = await liveController();
  using client = new Client(live, "/connections?interval=50");
  await client.next();
  const closed = once(client.socket, "close");
  const real = { ...live.control.connections };
  const broken = () => {
    throw new Error("counters are gone");
  };
  Object.assign(live.control.connections, { totals: broken });
  await closed;
  assert.equal((await fetch(`${live.url}/connections`)).status, 500);
  Object.assign(live.control.connections, { totals: real.totals });
  using again = new Client(live, "/connections");
  await again.next();
});

test("disposal ends streams at once and frees the port, a request in flight is still answered", async () => {
  const live = await liveController();
  using client = new Client(live, "/traffic");
  await once(client.socket, "open");
  const closed = once(client.socket, "close");
  live.control.configs.patch = async () => {
    await live.controller[Symbol.asyncDispose]();
  };
  const answer = await fetch(`${live.url}/configs`, { method: "PATCH", body: "{}" });
  assert.equal(answer.status, 204);
  await closed;
  await using again = await liveController({ listeners: { http: { host: "127.0.0.1", port: live.port } } });
  assert.equal(again.port, live.port);
  assert.equal(again.controller.endpoints.length, 1);
});

test("a stream of the log begins with the past only where it is asked for", async () => {
  await using live = await liveController();
  live.control.past = ["first", "second"].map((text) => ({ level: "info" as const, text, atMs: 0 }));
  using asking = new Client(live, "/logs?level=info&format=structured&history=1000");
  assert.equal((await asking.next<{ message: string }>()).message, "first");
  assert.equal((await asking.next<{ message: string }>()).message, "second");
  using other = new Client(live, "/logs?level=info");
  await once(other.socket, "open");
  for (const client of [asking, other]) assert.equal(client.socket.readyState, WebSocket.OPEN);
  while (live.control.watcherCount < 2) await setImmediate();
  live.control.emit("info", "third");
  assert.deepEqual(await other.next(), { type: "info", payload: "third" });
  assert.equal((await asking.next<{ message: string }>()).message, "third");
  assert.equal(await handshake(live, "/logs?level=info&history=1001"), 400);
});
