/** What only real sockets show: limits, keep-alive after a refusal, requests that two parsers would read differently. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SILENT, type LogText } from "#core/log.ts";
import { liveController } from "../support/live-controller.ts";
import { RawClient } from "../support/raw-http.ts";

const SECRET = "s3cret";
const HEAD = `Host: 127.0.0.1\r\nAuthorization: Bearer ${SECRET}\r\n`;
const PROBE = `GET /version HTTP/1.1\r\n${HEAD}\r\n`;
const WEBSOCKET = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n";
const LIMIT = 1_048_576;

test("a body over 1 MiB is 413 by its length, and the connection serves the next request", async () => {
  await using live = await liveController({ secret: SECRET });
  using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
  client.send(`PATCH /configs HTTP/1.1\r\n${HEAD}Content-Length: ${LIMIT + 1}\r\n\r\n`);
  await client.until(/413 /); // answered before the body came
  client.send(Buffer.alloc(LIMIT + 1, 0x20));
  client.send(PROBE);
  await client.until(/"meta":true/);
  assert.deepEqual(client.statuses, [413, 200]);
});

test("a chunked body over 1 MiB is 413 as soon as it is too long, and the connection serves the next request", async () => {
  await using live = await liveController({ secret: SECRET });
  using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
  client.send(`PUT /storage/x HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
  const chunk = Buffer.concat([Buffer.from("10000\r\n"), Buffer.alloc(65_536, 0x20), Buffer.from("\r\n")]);
  for (let at = 0; at < 17; at++) client.send(chunk);
  await client.until(/413 /);
  for (let at = 0; at < 5; at++) client.send(chunk);
  client.send(`0\r\n\r\n${PROBE}`);
  await client.until(/"meta":true/);
  assert.deepEqual(client.statuses, [413, 200]);
  assert.equal(live.control.stored.size, 0);
});

test("a refusal does not read the body as the next request", async () => {
  await using live = await liveController({ secret: SECRET });
  using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
  const inner = `DELETE /connections HTTP/1.1\r\n${HEAD}\r\n`;
  live.control.connect("a.example");
  client.send(`PATCH /configs HTTP/1.1\r\nHost: a\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`);
  client.send(`GET /version HTTP/1.1\r\n${HEAD}Content-Length: ${inner.length}\r\n\r\n${inner}`);
  client.send(PROBE);
  await client.until(/"meta":true[^]*"meta":true/);
  assert.deepEqual(client.statuses, [401, 200, 200]);
  assert.equal(live.control.live.size, 1);
});

test("the body is asked for after the credentials, not before", async () => {
  await using live = await liveController({ secret: SECRET });
  const expect = `Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`;
  using unknownClient = await RawClient.open({ host: "127.0.0.1", port: live.port });
  unknownClient.send(`PATCH /configs HTTP/1.1\r\nHost: a\r\n${expect}`);
  await unknownClient.closed();
  assert.deepEqual(unknownClient.statuses, [401]);
  using friend = await RawClient.open({ host: "127.0.0.1", port: live.port });
  friend.send(`PATCH /configs HTTP/1.1\r\n${HEAD}${expect}`);
  await friend.until(/100 Continue/);
  friend.send("{}");
  await friend.until(/204 /);
});

const SMUGGLING: readonly (readonly [name: string, head: string])[] = [
  ["length and chunked", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"],
  ["chunked and length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"],
  ["two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n"],
  ["a list of lengths", "Content-Length: 5, 6\r\n"],
  ["a signed length", "Content-Length: +5\r\n"],
  ["a negative length", "Content-Length: -5\r\n"],
  ["a hexadecimal length", "Content-Length: 0x5\r\n"],
  ["a huge length", "Content-Length: 99999999999999999999\r\n"],
  ["chunked not last", "Transfer-Encoding: chunked, identity\r\n"],
  ["an unknown coding", "Transfer-Encoding: xchunked\r\n"],
  ["two codings", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n"],
  ["a space before the colon", "Transfer-Encoding : chunked\r\n"],
  ["a folded header", "Content-Length:\r\n 5\r\n"],
  ["a bare line feed", "Content-Length: 5\nX: y\r\n"],
  ["a carriage return in a value", "X: a\rContent-Length: 5\r\n"],
  ["a NUL in a value", "X: a\0b\r\n"],
  ["two hosts", "Host: b.example\r\n"],
];

test("requests that two parsers would read differently are refused", async () => {
  await using live = await liveController({ secret: SECRET });
  for (const [name, head] of SMUGGLING) {
    live.control.connect("a.example");
    using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
    client.send(
      `POST /cache/dns/flush HTTP/1.1\r\n${HEAD}${head}\r\n0\r\n\r\nDELETE /connections HTTP/1.1\r\n${HEAD}\r\n`,
    );
    await client.until(/HTTP\/1\.1 4\d\d /);
    assert.equal(client.statuses[0], 400, name);
    if (name !== "two hosts") await client.closed(); // there both readings agree on where the request ends
    if (name !== "two hosts") assert.equal(live.control.live.size > 0, true, name);
    live.control.live.clear();
  }
});

/** Behind a good head that says `chunked`: what a lenient parser would read as the end, and another would not. */
const CHUNKS: readonly (readonly [name: string, body: string])[] = [
  ["a size of 65 bits", "10000000000000000\r\n"],
  ["a size that wraps round to 0", "10000000000000000\r\n\r\n"],
  ["a size that wraps round to 5", "10000000000000005\r\nhello\r\n0\r\n\r\n"],
  ["a size of 200 digits", `${"f".repeat(200)}\r\n`],
  ["a negative size", "-1\r\n"],
  ["a signed size", "+5\r\nhello\r\n0\r\n\r\n"],
  ["a size with 0x", "0x5\r\nhello\r\n0\r\n\r\n"],
  ["a size with underscores", "0_5\r\nhello\r\n0\r\n\r\n"],
  ["no size", "\r\nhello\r\n0\r\n\r\n"],
  ["a bare line feed behind the size", "5\nhello\r\n0\r\n\r\n"],
  ["a bare line feed in an extension", "5;a\nb\r\nhello\r\n0\r\n\r\n"],
  ["more data than the size says", "5\r\nhello!\r\n0\r\n\r\n"],
  ["no line end behind the data", "5\r\nhello0\r\n\r\n"],
];

test("chunk sizes that two parsers would read differently are refused", async () => {
  await using live = await liveController({ secret: SECRET });
  for (const [name, body] of CHUNKS) {
    live.control.connect("a.example");
    using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
    client.send(
      `PUT /storage/x HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n${body}DELETE /connections HTTP/1.1\r\n${HEAD}\r\n`,
    );
    await client.closed();
    assert.ok(
      client.statuses.every((status) => status === 400),
      `${name}: ${client.statuses.join()}`,
    );
    assert.equal(live.control.live.size, 1, name);
    assert.equal(live.control.stored.size, 0, name);
    live.control.live.clear();
  }
});

test("garbage, other protocols and endless headers end with 4xx or a closed connection, and others go on", async () => {
  await using live = await liveController();
  const garbage = [
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "\x05\x01\x00\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "GET /version HTTP/9.9\r\n\r\n",
    "GET /version HTTP/1.1\r\n\r\n",
    "CONNECT a.example:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    `GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${"x".repeat(20_000)}\r\n\r\n`,
    `GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`,
  ];
  for (const bytes of garbage) {
    using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
    client.send(Buffer.from(bytes, "latin1"));
    await client.closed();
    assert.doesNotMatch(client.received, /"meta"/, JSON.stringify(bytes.slice(0, 40)));
  }
  assert.equal((await fetch(`${live.url}/version`)).status, 200);
});

test("a URL instead of a path is served where it names the Host", async () => {
  await using live = await liveController();
  for (const [host, status] of [
    ["127.0.0.1", 200],
    ["evil.example", 400],
  ] as const) {
    using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
    client.send(`GET http://${host}/version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    await client.until(/\}$/);
    assert.deepEqual(client.statuses, [status], host);
  }
});

test("HTTP/1.0 without a Host is served; its connection closes", async () => {
  await using live = await liveController();
  using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
  client.send("GET /version HTTP/1.0\r\n\r\n");
  assert.match(await client.closed(), / 200 OK[^]*"meta":true/);
});

test("damaged requests cost only their sender, and are no fault of ours", async () => {
  const faults: string[] = [];
  const log = { ...SILENT, error: (text: LogText) => void faults.push(String(text)) };
  await using live = await liveController({}, log);
  const good = [
    "GET /proxies/a%2Fb/delay?timeout=50&url=x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    'PATCH /configs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 29\r\n\r\n{"tun":{"stack":"mixed"}}    ',
    "PUT /storage/x HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[1]\r\n0\r\n\r\n",
    "GET /logs HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n\x81\x80abcd",
  ];
  const damaged = fc
    .tuple(fc.constantFrom(...good), fc.nat(), fc.uint8Array({ maxLength: 4 }), fc.nat())
    .map(([text, at, bytes, cut]) => {
      const message = Buffer.from(text, "latin1");
      message.set(bytes.subarray(0, message.length - (at % message.length)), at % message.length);
      return message.subarray(0, 1 + (cut % message.length));
    });
  const send = async (bytes: Buffer) => {
    using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
    client.socket.end(bytes);
    await Promise.race([client.until(/HTTP/).catch(() => ""), client.closed()]);
    assert.ok(!client.statuses.includes(500), bytes.toString("latin1"));
  };
  await fc.assert(fc.asyncProperty(damaged, send), { numRuns: 300 });
  assert.deepEqual(faults, []);
  assert.equal((await fetch(`${live.url}/version`)).status, 200);
});

test("a restart happens though its client leaves before the answer", async () => {
  await using live = await liveController();
  const asked = Promise.withResolvers<void>();
  const checked = Promise.withResolvers<void>();
  const restarted = Promise.withResolvers<void>();
  live.control.upkeep.prepareRestart = async () => {
    asked.resolve();
    await checked.promise;
    return () => restarted.resolve();
  };
  using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
  client.send("POST /restart HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  await asked.promise;
  client.socket.resetAndDestroy();
  assert.equal((await fetch(`${live.url}/version`)).status, 200); // by then the reset has been seen
  checked.resolve();
  await restarted.promise;
});

test("an upgrade to something else than a WebSocket is answered as a plain request", async () => {
  await using live = await liveController();
  using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
  client.send("GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
  await client.until(/"meta":true/);
});

test("a WebSocket asked for behind a request that is not answered yet is answered as a plain request, in its turn", async () => {
  await using live = await liveController({ secret: SECRET });
  for (const [first, status] of [
    [PROBE, 200],
    ["GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 401],
  ] as const) {
    using client = await RawClient.open({ host: "127.0.0.1", port: live.port });
    const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\n${WEBSOCKET}`;
    client.send(`${first}GET /logs HTTP/1.1\r\n${HEAD}${upgrade}\r\n`);
    await client.until(/HTTP\/1\.1[^]*HTTP\/1\.1/);
    assert.deepEqual(client.statuses, [status, 200]);
    live.control.emit("info", "in its turn");
    await client.until(/"payload":"in its turn"/);
  }
});

test("an unfinished request is ended by the server's own time-out", async () => {
  await using live = await liveController();
  const started = performance.now();
  const clients = await Promise.all(
    ["", "GET /version HTTP/1.1\r\n", "GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "].map(
      async (bytes) => {
        const client = await RawClient.open({ host: "127.0.0.1", port: live.port });
        client.send(bytes);
        return client;
      },
    ),
  );
  const drip = setInterval(() => clients.at(-1)?.send("x"), 500);
  await Promise.all(clients.map((client) => client.closed()));
  clearInterval(drip);
  assert.ok(performance.now() - started > 5_000, "time for slow but honest clients");
});
