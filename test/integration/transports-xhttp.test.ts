/** The XHTTP server as a client of another make could use it, and misuse it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { ClientHttp2Session } from "node:http2";
import { connect } from "node:http2";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { openTransportServer } from "#transport/server.ts";
import { basePath, hasPadding, padding } from "#transport/xhttp/padding.ts";

async function open() {
  const tunnels: Duplex[] = [];
  const transport = await openTransportServer(
    { "client-auth-type": "", "xhttp-config": { path: "/x", mode: "auto" } },
    {
      name: "test",
      log: SILENT,
      files: {
        resolve: (path) => path,
        readPem: async (text) => text,
        watchPem: () => ({ [Symbol.dispose]() {} }),
      },
    },
  );
  const server = createServer({ allowHalfOpen: true }, (socket) =>
    transport.serve(socket, ({ stream }) => tunnels.push(stream.on("error", () => {}))),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  return {
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
  assert.equal(await ask(session, "POST", "/x/s", ""), 400);
  assert.equal(await ask(session, "GET", "/x/s/0/1"), 404);
  assert.equal(await ask(session, "GET", "/x/%00"), 404);
  assert.equal(await ask(session, "POST", "/x/s/0", Buffer.alloc(1_000_001)), 413);
  assert.equal(tunnels.length, 0);
});

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

test("padding", () => {
  assert.ok(hasPadding(`https://a/?x_padding=${padding()}`));
  assert.equal(hasPadding("https://a/?x_padding=XX"), false);
  assert.equal(basePath("/x"), "/x/");
});
