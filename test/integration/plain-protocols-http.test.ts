/** The HTTP listener byte by byte: CONNECT, forwarding, upgrades, hostile requests. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { DialError } from "#core/errors.ts";
import { http } from "#protocols/http/index.ts";
import { mixed } from "#protocols/mixed/index.ts";
import { PlainProxy } from "#protocols/http/plain.ts";
import { guardErrors, type Arrival } from "#net/accept.ts";
import { LOOPBACK_V4 } from "#net/ip.ts";
import { directAccept } from "../support/direct-accept.ts";
import { openInboundEnv, openTestInbound, type OpenedInbound } from "../support/inbound-env.ts";
import { countThenAnswer, echo, openTcpOrigin } from "../support/origin.ts";
import { openRawClient, say } from "../support/raw-client.ts";

const NO_LENGTH = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/** An origin that gives each request head (no bodies) to `on` and writes what it answers. */
function headOrigin(on: (head: string, socket: Socket) => string | Buffer) {
  return openTcpOrigin((socket) => {
    let held = "";
    socket.on("data", (bytes: Buffer) => {
      held += bytes.toString("latin1");
      for (let at = held.indexOf("\r\n\r\n"); at >= 0; at = held.indexOf("\r\n\r\n")) {
        const head = held.slice(0, at + 4);
        held = held.slice(at + 4);
        socket.write(on(head, socket));
      }
    });
    socket.on("end", () => socket.end());
  });
}

function linesOf(head: string): string[] {
  return head.trimEnd().split("\r\n");
}

test("CONNECT: bytes behind the head and the half-close go to the origin", async () => {
  await using origin = await openTcpOrigin(countThenAnswer);
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  using client = await openRawClient(proxy.port);
  client.socket.end(`CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\n\r\nabc`);
  assert.equal(await client.until("\r\n\r\n"), "HTTP/1.1 200 Connection established\r\n\r\n");
  assert.equal((await client.rest()).toString(), "3");
});

test("CONNECT byte by byte, HTTP/1.0, and a server that speaks first", async () => {
  await using origin = await openTcpOrigin((socket) => {
    socket.write("220 hello\r\n");
    echo(socket);
  });
  await using proxy = await openTestInbound(mixed, {}, { accept: directAccept().accept });
  using client = await openRawClient(proxy.port);
  for (const byte of `CONNECT 127.0.0.1:${origin.port} HTTP/1.0\r\nUser-Agent: x\r\n\r\nping`) {
    client.send(byte);
    await new Promise(setImmediate);
  }
  assert.equal(await client.until("\r\n\r\n"), "HTTP/1.0 200 Connection established\r\n\r\n");
  assert.equal(await client.until("ping"), "220 hello\r\nping");
});

test("CONNECT: what is malformed is answered with 400 and opens nothing", async () => {
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(http, {}, { accept });
  const CONNECT = "CONNECT a.test:443 HTTP/1.1\r\n";
  for (const bytes of [
    "CONNECT  HTTP/1.1\r\n\r\n",
    "CONNECT a.test:443 HTTP/2.0\r\n\r\n",
    "CONNECT a.test:443  HTTP/1.1\r\n\r\n",
    "CONNECT a.test:0 HTTP/1.1\r\n\r\n",
    "CONNECT a.test:99999 HTTP/1.1\r\n\r\n",
    "CONNECT ::1:443 HTTP/1.1\r\n\r\n",
    "CONNECT [zz]:443 HTTP/1.1\r\n\r\n",
    `${CONNECT}Content-Length: 5\r\n\r\nhello`,
    `${CONNECT}Content-Length: 0\r\nContent-Length: 5\r\n\r\n`,
    `${CONNECT}Transfer-Encoding: chunked\r\n\r\n`,
    `${CONNECT}Host: a\r\n folded\r\n\r\n`,
    `${CONNECT}Host : a\r\n\r\n`,
    `${CONNECT}Ho\nst: a\r\n\r\n`,
    `${CONNECT}Host: a\rb\r\n\r\n`,
    `${CONNECT}X: ${"y".repeat(70_000)}\r\n\r\n`,
  ]) {
    const answer = await say(proxy.port, bytes);
    assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/, bytes.slice(0, 60));
  }
  assert.equal(sessions.length, 0);
});

test("requests that others could read differently are refused", async () => {
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(http, {}, { accept });
  const POST = "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n";
  for (const bytes of [
    `${POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `${POST}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`,
    `${POST}Content-Length: +5\r\n\r\nhello`,
    `${POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    `${POST}X: 1\r\n 2\r\n\r\n`,
    `${POST}X : 1\r\n\r\n`,
    `${POST}X: 1\nY: 2\r\n\r\n`,
    `${POST}Host: b.test\r\n\r\n`,
    "POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "GET http:///x HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "GET http://u:p@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "GET http://a.test:0/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "GET http://a.test/\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "lorem ipsum\r\n\r\n",
  ]) {
    assert.match(await say(proxy.port, bytes), /^HTTP\/1\.1 400 Bad Request\r\n/, bytes.slice(0, 80));
  }
  const long = await say(proxy.port, `GET http://a.test/ HTTP/1.1\r\nX: ${"y".repeat(70_000)}\r\n\r\n`);
  assert.match(long, /^HTTP\/1\.1 431 /);
  assert.equal(sessions.length, 0);
});

test("forwarding: origin-form, the URL's host, no field of this hop", async () => {
  const heads: string[] = [];
  await using origin = await headOrigin((head) => {
    heads.push(head);
    return "HTTP/1.1 200 Fine\r\nConnection: X-Mine, close\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\nX-Two: a\r\nX-Two: b\r\nContent-Length: 2\r\n\r\nok";
  });
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  using client = await openRawClient(proxy.port);
  const authority = `127.0.0.1:${origin.port}`;
  client.send(
    `GET http://${authority}/a?b=c HTTP/1.1\r\nHost: other.test\r\nConnection: X-Drop, content-length\r\nX-Drop: 1\r\n` +
      "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nTE: trailers\r\nKeep-Alive: 5\r\n" +
      "x-KEPT: yes\r\nAccept: */*\r\n\r\n",
  );
  const head = linesOf(await client.until("\r\n\r\n"));
  assert.deepEqual(linesOf(heads[0] as string), [
    "GET /a?b=c HTTP/1.1",
    `Host: ${authority}`,
    "x-KEPT: yes",
    "Accept: */*",
    "Connection: keep-alive",
  ]);
  assert.equal(head[0], "HTTP/1.1 200 Fine");
  assert.deepEqual(head.slice(1).sort(), [
    "Connection: keep-alive",
    "Content-Length: 2",
    "Keep-Alive: timeout=60",
    "Proxy-Connection: keep-alive",
    "X-Two: a",
    "X-Two: b",
  ]);
  assert.equal((await client.read(2)).toString(), "ok");
});

test("keep-alive, pipelining in order, a flood of requests is cut off", async () => {
  await using origin = await headOrigin((head) => {
    const path = head.split(" ")[1] as string;
    return `HTTP/1.1 200 OK\r\nContent-Length: ${path.length}\r\n\r\n${path}`;
  });
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(http, {}, { accept });
  const get = (path: string) => `GET http://127.0.0.1:${origin.port}${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  using client = await openRawClient(proxy.port);
  client.send(get("/1") + get("/2") + get("/3"));
  for (const path of ["/1", "/2", "/3"]) {
    await client.until("\r\n\r\n");
    assert.equal((await client.read(2)).toString(), path);
  }
  assert.equal(sessions.length, 1);
  using flood = await openRawClient(proxy.port);
  flood.send(get("/").repeat(400));
  const got = (await flood.rest()).toString();
  assert.equal(got.split("200 OK").length - 1 <= 17, true);
});

test("many requests on one kept connection add nothing to it", async () => {
  await using origin = await headOrigin(() => NO_LENGTH);
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(http, {}, { accept });
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on("warning", onWarning);
  using client = await openRawClient(proxy.port);
  for (let count = 0; count < 30; count++) {
    client.send(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
    await client.until("\r\n\r\n");
  }
  process.off("warning", onWarning);
  assert.equal(sessions.length, 1);
  assert.deepEqual(warnings, []); // such as too many listeners on the stream
});

test("one connection, two targets and a CONNECT behind them", async () => {
  await using first = await headOrigin(() => NO_LENGTH);
  await using second = await headOrigin(() => NO_LENGTH);
  await using third = await openTcpOrigin(echo);
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(http, {}, { accept });
  using client = await openRawClient(proxy.port);
  for (const { port } of [first, second, first]) {
    client.send(`GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
    await client.until("\r\n\r\n");
  }
  client.send(`CONNECT 127.0.0.1:${third.port} HTTP/1.1\r\nHost: x\r\n\r\nping`);
  assert.equal(await client.until("ping"), "HTTP/1.1 200 Connection established\r\n\r\nping");
  const ports = sessions.map(({ destination }) => destination.port);
  assert.deepEqual(ports, [first.port, second.port, first.port, third.port]);
  assert.equal(new Set(sessions.map(({ id }) => id)).size, 4);
});

test("a kept connection that the origin has just closed: the request is sent once more", async () => {
  let requests = 0;
  await using origin = await headOrigin((_head, socket) => {
    // The first connection answers once and resets on the next request.
    if (++requests === 2) socket.resetAndDestroy();
    return NO_LENGTH;
  });
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(http, {}, { accept });
  using client = await openRawClient(proxy.port);
  for (let at = 0; at < 2; at++) {
    client.send(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
    assert.match(await client.until("\r\n\r\n"), /^HTTP\/1\.1 200/);
  }
  assert.equal(requests, 3);
  assert.equal(sessions.length, 2);
});

test("1xx answers come through; 100 only when asked for", async () => {
  await using origin = await headOrigin(() => `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${NO_LENGTH}`);
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  using client = await openRawClient(proxy.port);
  client.send(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.deepEqual(linesOf(await client.until("\r\n\r\n")), ["HTTP/1.1 103 Information", "Link: </a>"]);
  assert.match(await client.until("\r\n\r\n"), /^HTTP\/1\.1 200/);
  using old = await openRawClient(proxy.port);
  old.send(`GET http://127.0.0.1:${origin.port}/ HTTP/1.0\r\n\r\n`);
  assert.match((await old.rest()).toString(), /^HTTP\/1\.1 200/);
});

test("Expect: 100-continue waits for the origin's word", async () => {
  await using origin = await openTcpOrigin((socket) => {
    socket.once("data", (head: Buffer) => {
      assert.match(head.toString(), /Expect: 100-continue/i);
      socket.write("HTTP/1.1 100 Continue\r\n\r\n");
      socket.once("data", (body: Buffer) =>
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
      );
    });
  });
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  using client = await openRawClient(proxy.port);
  client.send(
    `PUT http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`,
  );
  assert.equal(await client.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  assert.match(await client.until("body"), /^HTTP\/1\.1 200 OK/);
});

const UPGRADE = "Connection: keep-alive, Upgrade\r\nUpgrade: toy\r\nProxy-Authorization: Basic eA==\r\n";

test("upgrade: fields untouched, both sides become one, bytes behind the heads are kept", async () => {
  let seen = "";
  await using origin = await headOrigin((head, socket) => {
    seen = head;
    socket.removeAllListeners("data");
    echo(socket);
    return "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: toy\r\n\r\nfirst ";
  });
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  using client = await openRawClient(proxy.port);
  client.send(`GET http://127.0.0.1:${origin.port}/chat HTTP/1.1\r\nHost: x\r\n${UPGRADE}\r\n`);
  const head = linesOf(await client.until("\r\n\r\n"));
  assert.deepEqual(head, ["HTTP/1.1 101 Switching", "Connection: Upgrade", "Upgrade: toy"]);
  assert.match(seen, /Connection: keep-alive, Upgrade\r\nUpgrade: toy\r\n/);
  assert.equal(seen.includes("Proxy-"), false);
  client.send("echoed");
  assert.equal(await client.until("echoed"), "first echoed");
  client.socket.end();
  assert.equal((await client.rest()).length, 0);
});

test("upgrade refused: the answer arrives and the connection closes", async () => {
  await using origin = await headOrigin(() => "HTTP/1.1 426 No\r\nContent-Length: 3\r\n\r\nno!");
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  const answer = await say(
    proxy.port,
    `GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n${UPGRADE}\r\n`,
  );
  assert.match(answer, /^HTTP\/1\.1 426 No\r\n[^]*\r\n\r\nno!$/);
  assert.match(answer, /Connection: close/);
});

test("upgrade to a destination that cannot be had", async () => {
  const { accept } = directAccept(undefined, () => new DialError("timeout", "slow"));
  await using proxy = await openTestInbound(http, { users: [{ username: "u", password: "p" }] }, { accept });
  const request = (authorization: string) =>
    `GET http://a.test/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: toy\r\n${authorization}\r\n`;
  assert.match(await say(proxy.port, request("")), /^HTTP\/1\.1 407 /);
  assert.match(await say(proxy.port, request("Proxy-Authorization: Basic dTpw\r\n")), /^HTTP\/1\.1 504 /);
});

test("an answer that is cut short is cut short for the client, too", async () => {
  await using origin = await headOrigin((_head, socket) => {
    setImmediate(() => socket.resetAndDestroy());
    return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart";
  });
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  const answer = await say(proxy.port, `GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.equal(answer.includes("502"), false);
  assert.equal(answer.length < 300, true);
});

test("an answer that is no HTTP becomes 502", async () => {
  await using origin = await headOrigin(() => "SSH-2.0-x\r\n\r\n");
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  const answer = await say(proxy.port, `GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.match(answer, /^HTTP\/1\.1 502 /);
});

test("an answer without a length ends with the connection", async () => {
  await using origin = await headOrigin((_head, socket) => {
    setImmediate(() => socket.end());
    return "HTTP/1.0 200 OK\r\n\r\nall of it";
  });
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  using client = await openRawClient(proxy.port);
  client.send(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.match(await client.until("0\r\n\r\n"), /Transfer-Encoding: chunked\r\n[^]*all of it/);
});

for (const leave of ["end", "resetAndDestroy"] as const) {
  test(`a client that leaves (${leave}) takes its request along`, async () => {
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
    await using origin = await headOrigin((_head, socket) => {
      socket.on("close", () => resolve());
      onAsked();
      return "";
    });
    await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
    using client = await openRawClient(proxy.port);
    client.send(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
    await asked;
    client.socket[leave]();
    await gone;
  });
}

test("a client that does not read makes the origin wait", async () => {
  const piece = Buffer.alloc(64 * 1024);
  let sent = 0;
  const { promise: stuck, resolve } = Promise.withResolvers<void>();
  await using origin = await openTcpOrigin((socket) => {
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      let quiet: NodeJS.Timeout | undefined;
      const more = (): void => {
        clearTimeout(quiet);
        while (sent < 1 << 30) {
          sent += piece.length;
          if (!socket.write(piece)) break;
        }
        socket.once("drain", more);
        quiet = setTimeout(resolve, 300);
      };
      more();
    });
  });
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  using client = await openRawClient(proxy.port);
  client.send(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  client.socket.pause();
  const before = process.memoryUsage().rss;
  await stuck;
  assert.equal(sent < 64 * 1024 * 1024, true, `the origin could send ${sent} bytes`);
  assert.equal(process.memoryUsage().rss - before < 128 * 1024 * 1024, true);
});

test("authentication: 407 keeps the connection for a request without a body only", async () => {
  const { accept, sessions } = directAccept();
  await using origin = await headOrigin(() => NO_LENGTH);
  await using proxy = await openTestInbound(http, { users: [{ username: "u", password: "" }] }, { accept });
  const url = `http://127.0.0.1:${origin.port}/`;
  using client = await openRawClient(proxy.port);
  client.send(`GET ${url} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const refused = await client.until("\r\n\r\n");
  assert.match(refused, /^HTTP\/1\.1 407 [^]*Proxy-Authenticate: Basic realm="proxy"\r\n/);
  const size = Number(/Content-Length: (\d+)/.exec(refused)?.[1]);
  await client.read(size);
  client.send(`GET ${url} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: bASIC dTo=\r\n\r\n`);
  assert.match(await client.until("\r\n\r\n"), /^HTTP\/1\.1 200/);
  assert.equal(sessions[0]?.inbound.user, "u");
  const posted = await say(proxy.port, `POST ${url} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab`);
  assert.match(posted, /^HTTP\/1\.1 407 [^]*Connection: close\r\n/);
  for (const wrong of ["Basic", "Basic !!!", "Bearer dTo=", "Basic dTp4", "Basic dQ==", "Basic eDo="]) {
    const answer = await say(
      proxy.port,
      `CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\nConnection: close\r\nProxy-Authorization: ${wrong}\r\n\r\n`,
    );
    assert.match(answer, /^HTTP\/1\.1 407 /, wrong);
  }
});

test("global accounts: the source filter and the exempted sources count", async () => {
  const { accept } = directAccept();
  await using origin = await headOrigin(() => NO_LENGTH);
  const accounts = [{ username: "u", password: "p" }];
  const request = `GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  const ask = async (opening: Promise<OpenedInbound>): Promise<string> => {
    await using proxy = await opening;
    return (await say(proxy.port, request)).slice(0, 12);
  };
  const open = (raw: object, access: object) => openTestInbound(http, { ...raw }, { accept, access });
  assert.equal(await ask(open({}, { accounts })), "HTTP/1.1 407");
  assert.equal(await ask(open({}, { accounts, skipsAuthentication: () => true })), "HTTP/1.1 200");
  assert.equal(await ask(open({}, { accounts, admits: () => false })), "");
  assert.equal(await ask(open({ users: [] }, { accounts, admits: () => false })), "HTTP/1.1 200");
  const own = { users: accounts };
  assert.equal(await ask(open(own, { accounts: [], skipsAuthentication: () => true })), "HTTP/1.1 407");
});

test("a head that takes too long, and disposal", async () => {
  const { accept } = directAccept();
  await using origin = await headOrigin(() => NO_LENGTH);
  await using env = openInboundEnv({ accept });
  const plain = new PlainProxy(env, { headMs: 100, idleMs: 60_000, checkMs: 50 });
  const [endpoint] = await env.listenTcp((socket) => {
    guardErrors(socket);
    const at = { ip: LOOPBACK_V4, port: 1 };
    const arrival: Arrival = { source: at, local: at };
    plain.take({ stream: socket, arrival, accounts: null });
  });
  const { port } = endpoint as { port: number };
  assert.match(await say(port, "GET http://a.test/ HTTP/1.1\r\nHo"), /^HTTP\/1\.1 408 /);
  using idle = await openRawClient(port);
  idle.send(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await idle.until("\r\n\r\n");
  plain[Symbol.dispose]();
  await once(idle.socket, "end");
});
