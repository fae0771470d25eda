/** Our http and socks5 outbounds against our listeners, and against hand-made proxies with odd manners. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { DialError } from "#core/errors.ts";
import type { DialContext, Outbound } from "#core/outbound.ts";
import type { Destination, Ip } from "#core/session.ts";
import { http } from "#protocols/http/index.ts";
import { mixed } from "#protocols/mixed/index.ts";
import { socks5 } from "#protocols/socks/index.ts";
import { makeCertificate } from "../support/certificate.ts";
import { inbox, readAll } from "../support/client.ts";
import { directAccept, directDialer } from "../support/direct-accept.ts";
import { openTestInbound, openTestOutbound } from "../support/inbound-env.ts";
import { watchLeaks } from "../support/leaks.ts";
import { countThenAnswer, echo, openTcpOrigin, openUdpEcho, source, type Origin } from "../support/origin.ts";

const context: DialContext = { signal: new AbortController().signal, metadata: null };
const USERS = [{ username: "alice", password: "s3cr:et" }];
const KINDS = [http, socks5];
const { cert, key } = makeCertificate();
const TLS = { certificate: cert, "private-key": key };
const to = (port: number): Destination => ({ host: "origin.test", ip: null, port });

async function failureOf(dial: Promise<unknown>): Promise<DialError> {
  return dial.then(
    () => assert.fail("the dial must not succeed"),
    (error: unknown) => {
      assert.equal(error instanceof DialError, true, String(error));
      return error as DialError;
    },
  );
}

function open(kind: (typeof KINDS)[number], port: number, raw: object = {}): Promise<Outbound> {
  return openTestOutbound(kind, { server: "127.0.0.1", port, ...raw }, directDialer);
}

for (const kind of KINDS) {
  for (const secure of [false, true]) {
    test(`${kind.type}${secure ? " over TLS" : ""}: both ways, half-close, users`, async () => {
      await using origin = await openTcpOrigin(countThenAnswer);
      const { accept, sessions } = directAccept();
      const options = { users: USERS, ...(secure ? TLS : {}) };
      await using proxy = await openTestInbound(mixed, options, { accept });
      const tls = secure ? { tls: true, "skip-cert-verify": true } : {};
      const out = await open(kind, proxy.port, { ...USERS[0], ...tls });
      const stream = await out.connect(to(origin.port), context);
      const size = 3_000_000;
      stream.end(randomBytes(size));
      assert.equal(String(await readAll(stream)), String(size));
      assert.equal(sessions[0]?.inbound.user, "alice");
      assert.deepEqual(sessions[0]?.destination, to(origin.port));
      const wrong = await open(kind, proxy.port, { username: "alice", password: "no", ...tls });
      assert.equal((await failureOf(wrong.connect(to(origin.port), context))).reason, "failed");
      assert.equal(sessions.length, 1);
    });
  }

  test(`${kind.type}: a certificate that does not fit is refused`, async () => {
    const { accept, sessions } = directAccept();
    await using proxy = await openTestInbound(mixed, TLS, { accept });
    const strict = await open(kind, proxy.port, { tls: true });
    await failureOf(strict.connect(to(1), context));
    assert.equal(sessions.length, 0);
  });

  test(`${kind.type}: the far dial's failure arrives`, async () => {
    let failure = new DialError("timeout", "slow");
    const { accept } = directAccept(undefined, () => failure);
    await using proxy = await openTestInbound(mixed, {}, { accept });
    const out = await open(kind, proxy.port);
    assert.equal((await failureOf(out.connect(to(1), context))).reason, "timeout");
    for (const reason of ["rejected", "dropped", "failed"] as const) {
      failure = new DialError(reason, "no");
      assert.equal((await failureOf(out.connect(to(1), context))).reason, "failed");
    }
    failure = new DialError("refused", "no");
    const { reason } = await failureOf(out.connect(to(1), context));
    assert.equal(reason, kind === socks5 ? "refused" : "failed");
  });

  test(`${kind.type}: IPv4 and IPv6 destinations keep their form`, async () => {
    const { accept, sessions } = directAccept(undefined, () => new DialError("failed", "enough"));
    await using proxy = await openTestInbound(mixed, {}, { accept });
    const out = await open(kind, proxy.port);
    for (const ip of ["1.2.3.4", "2001:db8::1"] as Ip[]) {
      await failureOf(out.connect({ host: null, ip, port: 443 }, context));
      assert.deepEqual(sessions.at(-1)?.destination, { host: null, ip, port: 443 });
    }
  });

  test(`${kind.type}: a silent proxy and an abort; a proxy that closes; one that is not there`, async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    await using silent = await openTcpOrigin((socket) => {
      socket.resume().on("close", () => resolve());
      socket.on("end", () => socket.end());
    });
    const abort = new AbortController();
    const dial = failureOf(
      (await open(kind, silent.port)).connect(to(1), { signal: abort.signal, metadata: null }),
    );
    setImmediate(() => abort.abort());
    assert.equal((await dial).reason, "aborted");
    await closed;
    await using rude = await openTcpOrigin((socket) => socket.end());
    assert.equal((await failureOf((await open(kind, rude.port)).connect(to(1), context))).reason, "failed");
    await using garbage = await openTcpOrigin((socket) => socket.end(randomBytes(2000)));
    assert.equal(
      (await failureOf((await open(kind, garbage.port)).connect(to(1), context))).reason,
      "failed",
    );
    const gone: Origin = await openTcpOrigin(echo);
    await gone[Symbol.asyncDispose]();
    assert.equal((await failureOf((await open(kind, gone.port)).connect(to(1), context))).reason, "refused");
  });

  test(`${kind.type} through ${kind.type}: chained by the dialer`, async () => {
    await using origin = await openTcpOrigin(echo);
    const { accept } = directAccept();
    await using first = await openTestInbound(mixed, {}, { accept });
    await using second = await openTestInbound(mixed, TLS, { accept });
    const near = await open(kind, first.port);
    const raw = { server: "127.0.0.1", port: second.port, tls: true, "skip-cert-verify": true };
    const far = await openTestOutbound(kind, raw, near);
    const stream = await far.connect(to(origin.port), context);
    stream.end("through two");
    assert.equal(String(await readAll(stream)), "through two");
  });
}

/** A proxy that writes `answer` when the request's head has come, then `tail` in the same segment. */
function scripted(steps: readonly [until: (got: Buffer) => boolean, answer: string][]): Promise<Origin> {
  return openTcpOrigin((socket: Socket) => {
    const left = [...steps];
    let got = Buffer.alloc(0);
    socket.on("data", (bytes: Buffer) => {
      got = Buffer.concat([got, bytes]);
      while (left[0]?.[0](got) === true) {
        socket.write(Buffer.from((left.shift() as (typeof steps)[0])[1], "latin1"));
        got = Buffer.alloc(0);
      }
    });
  });
}

async function firstBytes(stream: Duplex): Promise<string> {
  const [bytes] = (await once(stream, "data")) as [Buffer];
  return String(bytes);
}

const whole = (got: Buffer) => got.includes("\r\n\r\n");

test("http: any 2xx, 1xx before it, and bytes behind the head", async () => {
  for (const status of [
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 201\r\nVia: x\r\n",
    "HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 299 Fine\r\n",
  ]) {
    await using proxy = await scripted([[whole, `${status}\r\n220 smtp`]]);
    const stream = await (await open(http, proxy.port)).connect(to(25), context);
    assert.equal(await firstBytes(stream), "220 smtp");
    stream.destroy();
  }
});

test("http: what is asked", async () => {
  let asked = "";
  await using proxy = await scripted([
    [(got) => whole(got) && (asked = String(got)) !== "", "HTTP/1.1 200 OK\r\n\r\n"],
  ]);
  const raw = { username: "alice", password: "s3cr", headers: { "User-Agent": "x", host: "front.test" } };
  const stream = await (
    await open(http, proxy.port, raw)
  ).connect({ host: null, ip: "2001:db8::1" as Ip, port: 443 }, context);
  stream.destroy();
  assert.equal(
    asked,
    "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: front.test\r\n" +
      "Proxy-Authorization: Basic YWxpY2U6czNjcg==\r\nUser-Agent: x\r\n\r\n",
  );
  await assert.rejects(open(http, 1, { headers: { "X-A": "b\r\nc: d" } }), { code: "CONFIG" });
  const out = await open(http, proxy.port);
  const evil = { host: "a:1 HTTP/1.1\r\nx: y\r\n\r\n", ip: null, port: 1 };
  assert.equal((await failureOf(out.connect(evil, context))).reason, "failed");
  assert.equal((await failureOf(out.associate(to(1), context))).reason, "unsupported");
});

test("http: refusals and an endless head", async () => {
  for (const [answer, reason] of [
    ["HTTP/1.1 407 Auth\r\n\r\n", "failed"],
    ["HTTP/1.1 504 Late\r\n\r\n", "timeout"],
    ["HTTP/1.1 301 Moved\r\n\r\n", "failed"],
    [`HTTP/1.1 200 OK\r\nX: ${"y".repeat(70_000)}\r\n\r\n`, "failed"],
  ] as const) {
    await using proxy = await scripted([[whole, answer]]);
    assert.equal((await failureOf((await open(http, proxy.port)).connect(to(1), context))).reason, reason);
  }
});

test("socks5: bytes behind the reply, and methods that were not offered", async () => {
  const any = (got: Buffer) => got.length > 0;
  await using proxy = await scripted([
    [any, "\x05\x00"],
    [any, "\x05\x00\x00\x03\x01a\x00\x50220 smtp"],
  ]);
  const stream = await (await open(socks5, proxy.port)).connect(to(25), context);
  assert.equal(await firstBytes(stream), "220 smtp");
  stream.destroy();
  for (const choice of ["\x05\x02", "\x05\xff", "\x05\x01", "HTTP/1.1 400"]) {
    await using odd = await scripted([[any, choice]]);
    assert.equal((await failureOf((await open(socks5, odd.port)).connect(to(1), context))).reason, "failed");
  }
});

for (const secure of [false, true]) {
  test(`socks5${secure ? " over TLS" : ""}: UDP there and back, to two destinations`, async () => {
    await using first = await openUdpEcho();
    await using second = await openUdpEcho();
    const { accept, sessions } = directAccept();
    await using proxy = await openTestInbound(mixed, secure ? TLS : {}, { accept });
    const tls = secure ? { tls: true, "skip-cert-verify": true } : {};
    const out = await open(socks5, proxy.port, { udp: true, ...tls });
    assert.equal(out.networks.has("udp"), true);
    const flow = await out.associate(first.destination, context);
    const box = inbox(flow);
    for (const { destination } of [first, second]) {
      flow.send({ payload: Buffer.from(`to ${destination.port}`), destination });
      const item = await box.next();
      assert.equal(String(item.payload), `to ${destination.port}`);
      assert.deepEqual(item.destination, destination);
    }
    flow.send({ payload: Buffer.from("by name"), destination: to(first.port) });
    assert.equal(String((await box.next()).payload), "by name");
    assert.equal(sessions.length, 1);
    flow.send({ payload: Buffer.from("x"), destination: { host: "n".repeat(300), ip: null, port: 1 } });
    await flow[Symbol.asyncDispose]();
    await flow.closed;
  });
}

test("socks5: credentials that the protocol cannot carry are refused when the node is opened", async () => {
  await assert.rejects(open(socks5, 1, { username: "u", password: "ü".repeat(128) }), { code: "CONFIG" });
});

test("socks5: UDP is off unless asked for", async () => {
  const out = await open(socks5, 1);
  assert.equal(out.networks.has("udp"), false);
  assert.equal((await failureOf(out.associate(to(1), context))).reason, "unsupported");
});

test("socks5: 0.0.0.0 in the answer means the server; the flow ends with the TCP connection", async () => {
  await using relay = await openUdpEcho(); // echoes header and all: the client takes that for a datagram of its target
  const sockets: Socket[] = [];
  await using proxy = await openTcpOrigin((socket) => {
    sockets.push(socket);
    socket.once("data", () => {
      socket.write(Buffer.from([5, 0]));
      socket.once("data", () => {
        const answer = Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        answer.writeUInt16BE(relay.port, 8);
        socket.write(answer);
      });
    });
  });
  const out = await open(socks5, proxy.port, { udp: true });
  const flow = await out.associate(to(53), context);
  const box = inbox(flow);
  flow.send({ payload: Buffer.from("abc"), destination: to(53) });
  const item = await box.next();
  assert.deepEqual([String(item.payload), item.destination], ["abc", to(53)]);
  sockets[0]?.end();
  await flow.closed;
  flow.send({ payload: Buffer.from("late"), destination: to(53) });
});

test("a good transfer beside 1,000 malformed clients keeps its bytes", async () => {
  const size = 32 * 1024 * 1024;
  await using origin = await openTcpOrigin(source(size).on);
  const { accept } = directAccept();
  await using proxy = await openTestInbound(mixed, { users: USERS }, { accept });
  const out = await open(socks5, proxy.port, USERS[0]);
  const stream = await out.connect(to(origin.port), context);
  const hash = createHash("sha256");
  let got = 0;
  let allowed = 0; // a fiftieth of it for each round of malformed clients, so that the two run side by side
  stream.on("data", (chunk: Buffer) => {
    hash.update(chunk);
    if ((got += chunk.length) >= allowed) stream.pause();
  });
  const done = once(stream, "end");
  const starts = [
    "",
    "\x05\x01",
    "\x05\x02\x00\x02\x01",
    "\x04\x01",
    "CONNECT ",
    "GET http://",
    "POST http://a/ HTTP/1.1\r\n",
  ];
  for (let round = 0; round < 50; round++) {
    allowed += size / 50;
    stream.resume();
    await Promise.all(
      Array.from({ length: 20 }, async (_, at) => {
        const client = await directDialer.connect(
          { host: null, ip: "127.0.0.1" as Ip, port: proxy.port },
          context,
        );
        client.on("error", () => {});
        const start = Buffer.from(starts[at % starts.length] as string, "latin1");
        const bytes = Buffer.concat([start, randomBytes(1 + ((round * 37 + at * 11) % 400))]);
        client.resume();
        if (at % 3 === 0) client.write(bytes, () => client.destroy());
        else client.end(bytes);
        if (!client.destroyed) await once(client, "close");
      }),
    );
  }
  allowed = Infinity;
  stream.resume();
  await done;
  const wanted = createHash("sha256").update(Buffer.alloc(size, "0123456789abcdef")).digest("hex");
  assert.equal(hash.digest("hex"), wanted);
});

test("nothing is left open when clients, proxies and listeners are gone", async () => {
  const check = watchLeaks();
  {
    await using origin = await openTcpOrigin(echo);
    await using udp = await openUdpEcho();
    await using proxy = await openTestInbound(mixed, { users: USERS }, { accept: directAccept().accept });
    for (const kind of KINDS) {
      const out = await open(kind, proxy.port, { ...USERS[0], udp: true });
      const stream = await out.connect(to(origin.port), context);
      stream.end("bye");
      await readAll(stream);
      const wrong = await open(kind, proxy.port);
      await failureOf(wrong.connect(to(origin.port), context));
    }
    const flow = await (
      await open(socks5, proxy.port, { ...USERS[0], udp: true })
    ).associate(udp.destination, context);
    const box = inbox(flow);
    flow.send({ payload: Buffer.from("x"), destination: udp.destination });
    await box.next();
    await flow[Symbol.asyncDispose]();
    const plain = await directDialer.connect(
      { host: null, ip: "127.0.0.1" as Ip, port: proxy.port },
      context,
    );
    plain.write("GET http://origin.test:1/ HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(plain, "data");
    plain.destroy();
  }
  await check();
});
