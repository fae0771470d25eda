/** What goes wrong for clients whose sockets stay with workers costs no other client anything, and looks as it always did. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { DialError } from "#core/errors.ts";
import { toDestination } from "#net/address/ip.ts";
import { shadowsocks, ss } from "#protocols/shadowsocks/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { echoed } from "../support/client.ts";
import { directDialer } from "../support/direct-accept.ts";
import { openKeptClients, type KeptClients } from "../support/kept-clients.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openClient } from "../support/protocol-pair.ts";
import { openRawClient } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP clients that stay with workers: needs Linux";
const shadowed = {
  cipher: "2022-blake3-aes-128-gcm",
  password: Buffer.alloc(16, 7).toString("base64"),
  udp: false,
};
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const id = Buffer.from(uuid.replaceAll("-", ""), "hex");
/** VER ID A CMD PORT ATYP ADDR */
const REQUEST = Buffer.concat([Buffer.of(0), id, Buffer.of(0, 1, 0, 9, 1, 127, 0, 0, 1)]);
const NOISE = Buffer.alloc(600, 0xa5);

const openVless = (more: object = {}): Promise<KeptClients> =>
  openKeptClients(vless, { "allow-insecure": true, users: [{ username: "ann", uuid }], ...more });

async function dial(port: number, to: number): Promise<Duplex> {
  const { udp: _, ...client } = shadowed;
  const context = { signal: AbortSignal.timeout(20_000), metadata: null };
  const outbound = await openClient(ss, { server: "127.0.0.1", port, ...client }, { dialer: directDialer });
  const stream = await outbound.connect(toDestination("127.0.0.1", to), context);
  stream.on("error", () => {});
  return stream;
}

async function endOf(socket: Socket): Promise<string> {
  const reset = once(socket, "error").then(([error]) => String((error as NodeJS.ErrnoException).code));
  return await Promise.race([once(socket, "end").then(() => "end"), reset]);
}

test("a plan that comes to nothing leaves no message for another client", { skip }, async () => {
  await using server = await openKeptClients(shadowsocks, shadowed);
  await using origin = await openTcpOrigin(echo);
  server.plan = {
    wire() {
      throw new DialError("failed", "a name of 0 bytes");
    },
  };
  const first = await dial(server.port, origin.port);
  first.write("ping");
  await Promise.race([once(first, "end"), once(first.resume(), "close")]);
  server.plan = {};
  const second = await dial(server.port, origin.port);
  await echoed(second, 500);
  await echoed(second, 100_000);
  second.destroy();
});

test("a request that is read once more is answered by the clock of its answer", { skip }, async (context) => {
  const { now } = Date;
  let aheadMs = 0;
  context.mock.method(Date, "now", () => now() + aheadMs);
  await using server = await openKeptClients(shadowsocks, shadowed);
  const closed = await openTcpOrigin(echo);
  await closed[Symbol.asyncDispose]();
  server.plan = { isFirstOfMany: true };
  const stream = await dial(server.port, closed.port);
  stream.write("ping");
  await until("it has failed", () => server.failures.length > 0);
  const [session = assert.fail()] = server.sessions;
  aheadMs = 60_000; // a destination that thinks for a minute
  session.stream.pipe(session.stream);
  assert.equal(String(((await once(stream, "data")) as [Buffer])[0]), "ping");
  await echoed(stream, 100_000);
  stream.destroy();
});

for (const [what, more] of [
  ["", {}],
  [", where the web server behind it is down", { fallbacks: [{ dest: "127.0.0.1:9" }] }],
] as const)
  test(`who is not let in sees an end, however the bytes came${what}`, { skip }, async () => {
    await using server = await openVless(more);
    for (const cut of [600, 10]) {
      using noise = await openRawClient(server.port);
      const end = endOf(noise.socket);
      noise.send(NOISE.subarray(0, cut));
      await delay(20);
      noise.send(NOISE.subarray(cut));
      assert.equal(await end, "end");
    }
    assert.equal(server.sessions.length, 0);
  });

test("a dial that fails for good is an end, however the bytes came", { skip }, async () => {
  await using server = await openVless();
  for (const cut of [1_000, 10]) {
    server.instead = (session) => session.reply(new Error("refused"));
    using client = await openRawClient(server.port);
    const end = endOf(client.socket);
    const bytes = Buffer.concat([REQUEST, NOISE]);
    client.send(bytes.subarray(0, cut));
    await delay(20);
    client.send(bytes.subarray(cut));
    assert.equal(await end, "end");
  }
});
