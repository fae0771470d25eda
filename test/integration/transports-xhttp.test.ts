/** The XHTTP server as a client of another make could use it, and misuse it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { ClientHttp2Session } from "node:http2";
import { connect } from "node:http2";
import { connect as connectTcp, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { type Duplex, PassThrough, Readable } from "node:stream";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { openTransportServer } from "#transport/server.ts";
import type { Exchange } from "#transport/xhttp/exchange.ts";
import { basePath, hasPadding, padding } from "#transport/xhttp/padding.ts";
import { XhttpServer } from "#transport/xhttp/server.ts";
import { acceptedSocket } from "../support/accepted.ts";
import { directDialer } from "../support/direct-accept.ts";
import { textFiles } from "../support/text-files.ts";
import { tlsProvider } from "../support/tls.ts";

async function open(host = "", mode: "auto" | "stream-one" = "auto") {
  const tunnels: Duplex[] = [];
  const transport = await openTransportServer(
    { "client-auth-type": "", "xhttp-config": { path: "/x", mode, host } },
    {
      name: "test",
      log: SILENT,
      files: textFiles,
      tls: tlsProvider,
      dialer: directDialer,
      through: () => directDialer,
      nowMs: Date.now,
    },
  );
  const server = createServer({ allowHalfOpen: true }, (socket) =>
    transport.serve(acceptedSocket(socket), ({ stream }) => tunnels.push(stream.on("error", () => {}))),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  return {
    port,
    session,
    tunnels,
    async [Symbol.asyncDispose]() {
      session.destroy();
      transport[Symbol.dispose]();
      server.close();
      await once(server, "close");
    },
  };
}

const REFERER = `http://x/x/?x_padding=${"X".repeat(100)}`;

async function ask(
  session: ClientHttp2Session,
  method: string,
  path: string,
  body: Buffer | string | null = null,
  referer = REFERER,
): Promise<number> {
  const stream = session.request({ ":method": method, ":path": path, referer }, { endStream: false });
  stream.on("error", () => {});
  const answered = new Promise<number>((resolve) => {
    stream.once("response", (headers) => resolve(headers[":status"] as unknown as number));
    stream.once("close", () => resolve(0));
  });
  if (body !== null) stream.end(body);
  const status = await answered;
  stream.resume();
  return status;
}

test("posts come in any order and twice, and are read in the order of their numbers", async () => {
  await using xhttp = await open();
  const { session, tunnels } = xhttp;
  const late = ask(session, "POST", "/x/s1/2", "c");
  const later = ask(session, "POST", "/x/s1/1", "b");
  assert.equal(await ask(session, "GET", "/x/s1"), 200);
  const [tunnel] = tunnels as [Duplex];
  let got = "";
  tunnel.on("data", (bytes: Buffer) => (got += String(bytes)));
  assert.equal(await ask(session, "POST", "/x/s1/0", "a"), 200);
  assert.deepEqual(await Promise.all([late, later]), [200, 200]);
  assert.equal(await ask(session, "POST", "/x/s1/1", "again"), 200);
  assert.equal(await ask(session, "POST", "/x/s1/3", "d"), 200);
  assert.equal(got, "abcd");
  assert.equal(await ask(session, "GET", "/x/s1"), 409);
});

test("what does not fit is refused as a web server would", async () => {
  await using xhttp = await open();
  const { session, tunnels } = xhttp;
  assert.equal(await ask(session, "GET", "/elsewhere"), 404);
  assert.equal(await ask(session, "GET", "/x/s", null, "http://x/"), 400);
  assert.equal(await ask(session, "GET", "/x/s", null, `${REFERER}${"X".repeat(1000)}`), 400);
  assert.equal(await ask(session, "PUT", "/x/s"), 405);
  assert.equal(await ask(session, "POST", "/x/s/one", ""), 400);
  assert.equal(await ask(session, "GET", "/x/s/0/1"), 404);
  assert.equal(await ask(session, "GET", "/x/%00"), 404);
  assert.equal(await ask(session, "POST", "/x/s/0", Buffer.alloc(1_000_001)), 413);
  assert.equal(tunnels.length, 0);
});

test("where the listener says stream-one, that alone is served", async () => {
  await using xhttp = await open("", "stream-one");
  const { session, tunnels } = xhttp;
  assert.equal(await ask(session, "GET", "/x/s"), 400);
  assert.equal(await ask(session, "POST", "/x/s", ""), 400);
  assert.equal(await ask(session, "POST", "/x/s/0", ""), 400);
  assert.equal(await ask(session, "GET", "/x/"), 404);
  assert.equal(tunnels.length, 0);
  assert.equal(await ask(session, "POST", "/x/"), 200);
  assert.equal(tunnels.length, 1);
  assert.match(await say(xhttp.port, streamOne("POST", "/x/"), /200 OK/), /x-padding: X{100}/);
  assert.match(await say(xhttp.port, streamOne("GET", "/x/s"), /400/), /^HTTP\/1.1 400/);
  assert.equal(tunnels.length, 2);
});

const streamOne = (method: string, path: string): string =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nReferer: ${REFERER}\r\nTransfer-Encoding: chunked\r\n\r\n`;

test("a session whose posts never fit together is dropped", async () => {
  await using xhttp = await open();
  const { session, tunnels } = xhttp;
  assert.equal(await ask(session, "GET", "/x/s2"), 200);
  const [tunnel] = tunnels as [Duplex];
  const closed = new Promise((resolve) => tunnel.once("close", resolve));
  const posts = Array.from({ length: 31 }, (_, index) => ask(session, "POST", `/x/s2/${index + 5}`, "x"));
  await closed;
  await Promise.all(posts);
});

/** Says `text` on a fresh connection and answers with all that comes back, once `enough` has come or it is closed. */
async function say(port: number, text: string, enough: RegExp): Promise<string> {
  const socket = connectTcp({ port, host: "127.0.0.1" });
  socket.on("error", () => {});
  socket.write(text);
  let got = "";
  for await (const bytes of socket) if (enough.test((got += String(bytes)))) break;
  return got;
}

const HEAD = `Host: x\r\nReferer: ${REFERER}\r\n`;

test("over HTTP/1.1: requests that share a connection, whole or in single bytes", async () => {
  await using xhttp = await open();
  const { port, tunnels } = xhttp;
  const down = say(port, `GET /x/s1 HTTP/1.1\r\n${HEAD}\r\n`, /0\r\n\r\n$/);
  const post = (sequence: number, body: string) =>
    `POST /x/s1/${sequence}?a=1 HTTP/1.1\r\n${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`;
  const answers = await say(port, post(1, "b") + post(0, "a") + post(0, "again"), /(HTTP[^]*){3}/);
  assert.equal(answers.match(/^HTTP\/1\.1 200/gm)?.length, 3);
  const socket = connectTcp({ port, host: "127.0.0.1", noDelay: true }).on("error", () => {});
  for (const byte of post(2, "c")) socket.write(byte);
  await once(socket, "data");
  socket.destroy();
  while (tunnels.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const [tunnel] = tunnels as [Duplex];
  let got = "";
  tunnel.on("data", (bytes: Buffer) => (got += String(bytes)));
  while (got.length < 3) await once(tunnel, "data");
  assert.equal(got, "abc");
  tunnel.end("answer");
  assert.match(await down, /^HTTP\/1\.1 200[^]*text\/event-stream[^]*answer/);
});

/** One that the server is told of, with whatever answer. */
const exchange = (method: string, request: Readable): Exchange => ({
  method,
  referer: REFERER,
  host: "x",
  body: new PassThrough(),
  request,
  begin() {},
  finish() {},
});

test("a listener with a host serves no other, over HTTP/2 and HTTP/1.1", async () => {
  await using server = await open("cdn.example.com");
  const { session, port, tunnels } = server;
  const status = async (authority: string): Promise<number> => {
    const head = { ":method": "POST", ":path": "/x/", ":authority": authority, referer: REFERER };
    const stream = session.request(head, { endStream: false }).on("error", () => {});
    const [headers] = (await once(stream, "response")) as [Record<string, number>];
    stream.destroy();
    return headers[":status"] ?? 0;
  };
  assert.equal(await status("elsewhere.example.com"), 404);
  assert.equal(await status("cdn.example.com.evil"), 404);
  assert.equal(tunnels.length, 0);
  assert.equal(await status("CDN.example.com:8443"), 200);
  for (const [host, expected] of [
    ["elsewhere.example.com", "404"],
    ["cdn.example.com", "200"],
  ] as const) {
    const socket = connectTcp(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(
      `POST /x/ HTTP/1.1\r\nHost: ${host}\r\nReferer: ${REFERER}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    const [bytes] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    assert.equal(bytes.toString("latin1").split(" ")[1], expected, host);
  }
});

test("a post that came whole counts, though its client has gone by then", async () => {
  using server = new XhttpServer({ path: "/x", hosts: [] });
  const { promise, resolve } = Promise.withResolvers<Duplex>();
  server.serve(exchange("GET", Readable.from([])), "/x/s1", resolve);
  const tunnel = await promise;
  server.serve(exchange("POST", Readable.from([Buffer.from("whole")])), "/x/s1/0", resolve);
  assert.deepEqual(await once(tunnel, "data"), [Buffer.from("whole")]);
  tunnel.destroy();
});

test("posts that only wait for a slow reader are kept", async () => {
  using server = new XhttpServer({ path: "/x", hosts: [] });
  const { promise, resolve } = Promise.withResolvers<Duplex>();
  server.serve(exchange("GET", Readable.from([])), "/x/s1", resolve);
  const tunnel = await promise;
  const bodies = Array.from({ length: 60 }, (_, index) => Buffer.alloc(100_000, index));
  for (const [index, body] of bodies.entries()) {
    const request = Readable.from([body]);
    server.serve(exchange("POST", request), `/x/s1/${index}`, resolve);
    await once(request, "end");
  }
  const got: Buffer[] = [];
  tunnel.on("data", (bytes: Buffer) => got.push(bytes));
  while (got.length < bodies.length && !tunnel.destroyed) await new Promise((next) => setImmediate(next));
  assert.ok(Buffer.concat(got).equals(Buffer.concat(bodies)));
  tunnel.destroy();
});

test("over HTTP/1.1 what does not fit is refused, and what is no HTTP closed", async () => {
  await using xhttp = await open();
  const { port, tunnels } = xhttp;
  const status = async (request: string) =>
    /^HTTP\/1\.1 (\d+)/.exec(await say(port, `${request}\r\n`, /\r\n\r\n/))?.[1];
  assert.equal(await status(`GET /elsewhere HTTP/1.1\r\n${HEAD}`), "404");
  assert.equal(await status("GET /x/s HTTP/1.1\r\nHost: x\r\n"), "400");
  assert.equal(await status(`PUT /x/s HTTP/1.1\r\n${HEAD}Content-Length: 0\r\n`), "405");
  assert.equal(await status(`POST /x/s/one HTTP/1.1\r\n${HEAD}Content-Length: 0\r\n`), "400");
  assert.equal(
    await status(`POST /x/s/0 HTTP/1.1\r\n${HEAD}Content-Length: 1000001\r\n\r\n${"x".repeat(1_000_001)}`),
    "413",
  );
  assert.equal(await say(port, "\0\0nonsense\r\n\r\n", /./), "");
  assert.equal(await say(port, `GET /x/${"y".repeat(20_000)} HTTP/1.1\r\n${HEAD}\r\n`, /./), "");
  assert.equal(tunnels.length, 0);
});

test("a streamed upload beside a GET; a second one is refused", async () => {
  await using xhttp = await open();
  const { session, tunnels } = xhttp;
  const up = session.request({ ":method": "POST", ":path": "/x/s9", referer: REFERER }, { endStream: false });
  up.on("error", () => {}).resume();
  up.write("first");
  await once(up, "response");
  assert.equal(await ask(session, "POST", "/x/s9", ""), 409);
  assert.equal(await ask(session, "GET", "/x/s9"), 200);
  const [tunnel] = tunnels as [Duplex];
  up.end(" last");
  let got = "";
  for await (const bytes of tunnel) got += String(bytes);
  assert.equal(got, "first last");
  tunnel.destroy();
});

test("padding", () => {
  assert.ok(hasPadding(`https://a/?x_padding=${padding()}`));
  assert.equal(hasPadding("https://a/?x_padding=XX"), false);
  assert.equal(basePath("/x"), "/x/");
});
