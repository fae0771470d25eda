/** The HTTP listener byte by byte: CONNECT, what is refused, who is let in. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { http } from "#protocols/http/index.ts";
import { mixed } from "#protocols/mixed/index.ts";
import { PlainProxy } from "#protocols/http/plain.ts";
import type { AcceptedConnection } from "#core/accepted.ts";
import { directAccept } from "../support/direct-accept.ts";
import { headOrigin, NO_LENGTH } from "../support/head-origin.ts";
import { openInboundEnv, openTestInbound, type OpenedInbound } from "../support/inbound-env.ts";
import { countThenAnswer, echo, openTcpOrigin } from "../support/origin.ts";
import { openRawClient, say } from "../support/raw-client.ts";

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
  const onAccepted = (connection: AcceptedConnection): void => plain.take({ connection, accounts: null });
  const [endpoint] = await env.listenTcp({ handshake: "unknown", onAccepted });
  const { port } = endpoint as { port: number };
  assert.match(await say(port, "GET http://a.test/ HTTP/1.1\r\nHo"), /^HTTP\/1\.1 408 /);
  using idle = await openRawClient(port);
  idle.send(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await idle.until("\r\n\r\n");
  plain[Symbol.dispose]();
  await once(idle.socket, "end");
});
