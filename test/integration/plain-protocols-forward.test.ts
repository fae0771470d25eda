/** The HTTP listener byte by byte: requests that are forwarded, upgrades, answers of every kind. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DialError } from "#core/errors.ts";
import { http } from "#protocols/http/index.ts";
import { directAccept } from "../support/direct-accept.ts";
import { headOrigin, linesOf, NO_LENGTH } from "../support/head-origin.ts";
import { openTestInbound } from "../support/inbound-env.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openRawClient, say } from "../support/raw-client.ts";

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

test("a client that resets takes its request along", async () => {
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
  client.socket.resetAndDestroy();
  await gone;
});

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

test("103 without end is not kept for a client that does not read", async () => {
  const hints = Buffer.from(`HTTP/1.1 103 Early Hints\r\nLink: </${"a".repeat(1000)}>\r\n\r\n`.repeat(64));
  let sentBytes = 0;
  const { promise: sent, resolve: onSent } = Promise.withResolvers<void>();
  await using origin = await openTcpOrigin((socket) => {
    const more = (): void => {
      while (sentBytes < 2 ** 26) {
        sentBytes += hints.length;
        if (!socket.write(hints)) return void socket.once("drain", more);
      }
      socket.write(NO_LENGTH, () => onSent());
    };
    socket.once("data", more);
  });
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  using client = await openRawClient(proxy.port);
  client.socket.removeAllListeners("data").pause();
  client.send(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await sent;
  let [receivedBytes, last] = [0, ""];
  const { promise: answered, resolve: onAnswer } = Promise.withResolvers<void>();
  client.socket.on("data", (bytes: Buffer) => {
    receivedBytes += bytes.length;
    last = (last + bytes.toString("latin1", Math.max(0, bytes.length - 200))).slice(-200);
    if (last.includes("200 OK")) onAnswer();
  });
  client.socket.resume();
  await answered;
  assert.ok(receivedBytes < 2 ** 25, `${receivedBytes} bytes were kept`);
});
