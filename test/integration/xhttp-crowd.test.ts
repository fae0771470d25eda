/** What clients of XHTTP and gRPC that show no credentials make a listener of the event loop hold, beside one that does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StreamSession } from "#core/session.ts";
import { UnauthenticatedPool } from "#net/listen/unauthenticated-clients.ts";
import { vless } from "#protocols/vless/index.ts";
import * as http2 from "#transport/http2/frames.ts";
import { FIRST_WINDOW } from "#transport/http2/frames.ts";
import { toDestination } from "#net/address/ip.ts";
import { directDialer } from "../support/direct-accept.ts";
import { openInboundEnv, openTestOutbound } from "../support/inbound-env.ts";
import { openFrames, requestFrame } from "../support/kept-http2.ts";
import { uuid } from "../support/tls-sides.ts";
import { until } from "../support/until.ts";

const REFERER = `http://x/x/?x_padding=${"X".repeat(100)}`;
const PIECE = Buffer.alloc(http2.MOST_PAYLOAD_BYTES - 1);

async function open() {
  await using undo = new AsyncDisposableStack();
  const unauthenticated = new UnauthenticatedPool();
  const accept = (session: unknown): void => {
    const { stream, ...one } = session as StreamSession;
    one.reply?.call(session, null);
    stream.on("error", () => {}).pipe(stream);
  };
  const env = undo.use(openInboundEnv({ accept: accept as never }));
  const options = {
    users: [{ username: "ann", uuid }],
    "allow-insecure": true,
    "xhttp-config": { path: "/x" },
  };
  const side = vless.inbound;
  assert.ok(side !== undefined);
  const inbound = undo.use(await side.open(side.schema.parse(options) as never, { ...env, unauthenticated }));
  const port = inbound.endpoints[0]?.port ?? 0;
  const opened = undo.move();
  return {
    port,
    unauthenticated,
    frames: async () => {
      const client = await openFrames({ security: "plain", isGrpc: false }, port);
      client.begin();
      return client;
    },
    /** A user who is served now. */
    async isServed(mode: string): Promise<void> {
      const node = { server: "127.0.0.1", port, uuid, network: "xhttp", "xhttp-opts": { path: "/x", mode } };
      await using outbound = await openTestOutbound(vless, node, directDialer);
      const context = { signal: AbortSignal.timeout(5000), metadata: null };
      const stream = await outbound.connect(toDestination("127.0.0.1", 1), context);
      stream.on("error", () => {}).write("hello");
      let got = "";
      stream.on("data", (bytes: Buffer) => (got += String(bytes)));
      await until("it is answered", () => got === "hello");
      stream.destroy();
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const request = (id: number, method: string, path: string, flags = 0): Buffer =>
  requestFrame(
    id,
    [
      [":method", method],
      [":scheme", "http"],
      [":authority", "x"],
      [":path", path],
      ["referer", REFERER],
    ],
    flags,
  );
const idOf = (nth: number): number => 1 + 2 * nth;

test("sessions of clients without credentials leave room for those of users", async () => {
  await using world = await open();
  for (let connection = 0; connection < 4; connection++) {
    const client = await world.frames();
    for (let nth = 0; nth < 350; nth++) client.send(request(idOf(nth), "GET", `/x/c${connection}s${nth}`));
  }
  await until("they count", () => world.unauthenticated.size > 300);
  for (const mode of ["packet-up", "stream-up", "stream-one"]) await world.isServed(mode);
  assert.ok(world.unauthenticated.size < 1400, `${world.unauthenticated.size}`);
});

test("uploads that no one reads have a window of the protocol's own beginning", async () => {
  await using world = await open();
  const client = await world.frames();
  for (let nth = 0; nth < 4; nth++) {
    client.send(request(idOf(nth), "POST", `/x/s${nth}`));
    for (let sent = 0; sent + PIECE.length <= FIRST_WINDOW; sent += PIECE.length)
      client.send(http2.encodeFrame(http2.DATA, 0, idOf(nth), PIECE));
  }
  await until("they are answered", () => client.heard(idOf(3)).fields.length > 0);
  const settings = client.others.find(({ type, flags }) => type === http2.SETTINGS && flags === 0);
  for (let at = 0; at < (settings?.payload.length ?? 0); at += 6)
    assert.notEqual(settings?.payload.readUInt16BE(at), http2.INITIAL_WINDOW_SIZE);
  for (let nth = 0; nth < 4; nth++) assert.equal(client.heard(idOf(nth)).granted, 0);
  client.socket.destroy();
  await until("nothing is left", () => world.unauthenticated.size === 0 || world.unauthenticated.size === 4);
});

test("posts that never become whole take no room from those of users, and end with their session", async () => {
  await using world = await open();
  const client = await world.frames();
  const bytes = 60 * PIECE.length;
  for (let nth = 0; nth < 70; nth++) {
    client.send(request(idOf(nth), "POST", `/x/s${nth}/5`));
    for (let sent = 0; sent < bytes; sent += PIECE.length)
      client.send(http2.encodeFrame(http2.DATA, 0, idOf(nth), PIECE));
  }
  await until("the first ones are ended", () => client.heard(1).isOver || client.isClosed);
  await world.isServed("packet-up");
  client.socket.destroy();
});

test("a connection whose posts are those of a user's session counts no more", async () => {
  await using world = await open();
  const [up, down] = [await world.frames(), await world.frames()];
  down.send(request(1, "GET", "/x/s", http2.END_STREAM));
  await until("all three count", () => world.unauthenticated.size === 3);
  const header = Buffer.concat([
    Buffer.of(0),
    Buffer.from(uuid.replaceAll("-", ""), "hex"),
    Buffer.of(0, 1, 0, 80, 1, 127, 0, 0, 1),
  ]);
  up.send(request(1, "POST", "/x/s/0"), http2.encodeFrame(http2.DATA, http2.END_STREAM, 1, header));
  await until("none does", () => world.unauthenticated.size === 0);
  for (const { socket } of [up, down]) socket.destroy();
});
