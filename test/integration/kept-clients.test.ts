/** Servers whose clients stay with workers: their first bytes are read by the main thread, their sockets by none but the worker. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { setTimeout as delay } from "node:timers/promises";
import type { StreamSession } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";
import { shadowsocks } from "#protocols/shadowsocks/index.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { openHttpUpgradeClient, openWebSocketClient } from "#transport/websocket/client.ts";
import { directDialer } from "../support/direct-accept.ts";
import { echoed, outcome } from "../support/client.ts";
import { openKeptClients, type KeptClients } from "../support/kept-clients.ts";
import { ids, key, KINDS, type Kind, PATH } from "../support/kept-kinds.ts";
import { countThenAnswer, echo, openTcpOrigin } from "../support/origin.ts";
import { openClient } from "../support/protocol-pair.ts";
import { until } from "../support/until.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

const skip = process.platform === "linux" ? false : "SKIP clients that stay with workers: needs Linux";
async function dial(
  { protocol, node = protocol, client }: Kind,
  port: number,
  to: number,
  dialer = directDialer,
) {
  const context = { signal: AbortSignal.timeout(20_000), metadata: null };
  const outbound = await openClient(node, { server: "127.0.0.1", port, ...client }, { dialer });
  const stream = await outbound.connect(toDestination("127.0.0.1", to), context);
  stream.on("error", () => {});
  return stream;
}

const open = ({ protocol, server }: Kind): Promise<KeptClients> => openKeptClients(protocol, server);

/** As far as anybody comes. */
async function connectTo({ server, client }: Kind, port: number): Promise<Duplex> {
  const isTls = "certificate" in server;
  const where = { port, host: "127.0.0.1" };
  const socket = isTls ? connectTls({ ...where, rejectUnauthorized: false }) : connect(where);
  socket.on("error", () => {});
  await once(socket, isTls ? "secureConnect" : "connect");
  if (!("ws-opts" in client)) return socket;
  const place = { path: PATH, host: "server.test", headers: {} };
  const signal = AbortSignal.timeout(5_000);
  const stream = JSON.stringify(client).includes('upgrade":true')
    ? await openHttpUpgradeClient(socket, { ...place, fastOpen: false }, signal)
    : await openWebSocketClient(socket, { ...place, earlyDataBytes: 0, earlyDataHeader: "" }, signal);
  return stream.on("error", () => {});
}

/** The first words are as short as those of most clients. */
async function converse(stream: Duplex): Promise<void> {
  await echoed(stream, 500);
  await echoed(stream, 100_000);
}

async function restOf(stream: Duplex): Promise<string> {
  let text = "";
  for await (const bytes of stream) text += String(bytes);
  return text;
}

/** Passes on what comes, the first of it in pieces with pauses in between. */
async function openCutter(port: number, cuts: readonly number[]) {
  const sockets: Socket[] = [];
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    far.setNoDelay(true);
    sockets.push(near, far);
    for (const one of [near, far]) one.on("error", () => {});
    far.pipe(near);
    near.once("data", (first: Buffer) => {
      near.pause();
      void (async () => {
        let from = 0;
        for (const cut of cuts.filter((at) => at < first.length)) {
          far.write(first.subarray(from, cut));
          from = cut;
          await delay(4);
        }
        far.write(first.subarray(from));
        near.pipe(far);
      })();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const one of sockets) one.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

for (const [name, kind] of Object.entries(KINDS)) {
  test(
    `${name}: the worker keeps the socket, whatever is said arrives, and is counted`,
    { skip },
    async () => {
      await using server = await open(kind);
      await using origin = await openTcpOrigin(echo);
      await using counter = await openTcpOrigin(countThenAnswer);
      const both = await dial(kind, server.port, origin.port);
      both.write("with the request");
      assert.equal(String(((await once(both, "data")) as [Buffer])[0]), "with the request");
      await echoed(both, 3_000_000);
      both.end();
      await once(both, "close");
      const silent = await dial(kind, server.port, counter.port);
      silent.end();
      assert.equal(await restOf(silent), "0");
      const one = await dial(kind, server.port, counter.port);
      one.write(Buffer.alloc(2_000)); // more would be a request that a worker does not show
      await until("it is kept", () => server.kept.length === 3);
      one.end(Buffer.alloc(298_000));
      assert.equal(await restOf(one), "300000");
      await until("all have ended", () => server.ended.length === 3);
      assert.equal(server.kept.length, 3);
      const whole = 3_000_016;
      assert.deepEqual(server.ended, [
        { upload: whole, download: whole },
        { upload: 0, download: 1 },
        { upload: 300_000, download: 6 },
      ]);
    },
  );

  test(`${name}: a request in pieces`, { skip }, async () => {
    await using server = await open(kind);
    await using origin = await openTcpOrigin(echo);
    for (const cuts of [[1], [16, 17, 18], [30, 43, 60], Array.from({ length: 40 }, (_, at) => at * 7 + 1)]) {
      await using cutter = await openCutter(server.port, cuts);
      const stream = await dial(kind, cutter.port, origin.port);
      await converse(stream);
      stream.destroy();
    }
  });

  test(
    `${name}: where the worker cannot dial, the event loop goes on with all that was said`,
    { skip },
    async () => {
      await using server = await open(kind);
      const closed = await openTcpOrigin(echo);
      await closed[Symbol.asyncDispose]();
      server.plan = { isFirstOfMany: true };
      const stream = await dial(kind, server.port, closed.port);
      stream.write("ping");
      await until("it has failed", () => server.failures.length > 0 || server.ended.length > 0);
      const [session = assert.fail()] = server.sessions;
      assert.match(server.failures[0]?.message ?? "", /ECONNREFUSED|refused/);
      session.stream.pipe(session.stream);
      assert.equal(String(((await once(stream, "data")) as [Buffer])[0]), "ping");
      await echoed(stream, 100_000);
      stream.destroy();
    },
  );

  test(`${name}: a dial that fails for good ends the client`, { skip }, async () => {
    await using server = await open(kind);
    server.instead = (session) => session.reply(new Error("refused"));
    const stream = await dial(kind, server.port, 9);
    stream.write("ping");
    stream.resume();
    const gone = await Promise.race([outcome(stream), once(stream, "end").then(() => "end")]);
    assert.ok(gone !== undefined);
    assert.equal(server.ended.length, 0);
  });

  test(`${name}: noise is answered as ever, and the session of no client`, { skip }, async () => {
    await using server = await open(kind);
    const noise = await connectTo(kind, server.port);
    noise.on("data", () => assert.fail("a byte for one who has not authenticated"));
    noise.write(Buffer.alloc(600, 0xa5));
    const isDests = "reality-config" in kind.server; // and ends as that ends it
    if (isDests || kind.protocol === vless || kind.protocol === trojan) await outcome(noise);
    else {
      await delay(50);
      noise.write(Buffer.alloc(600, 0xa5));
      await delay(50);
      assert.equal(noise.destroyed, false);
      noise.end();
      await Promise.race([once(noise, "end"), outcome(noise)]);
    }
    assert.equal(server.sessions.length, 0);
  });
}

for (const name of [
  "VLESS",
  "VMess",
  "Shadowsocks 2022, users",
  "VLESS in TLS",
  "VLESS with Vision",
  "Vision in REALITY",
  "Trojan",
  "VLESS in TLS in WebSocket",
]) {
  test(`${name}: a removed user's connection is cut off, and no other's`, { skip }, async () => {
    const kind = KINDS[name] as Kind;
    await using server = await open(kind);
    await using origin = await openTcpOrigin(echo);
    const isShadow = kind.protocol === shadowsocks;
    const other = {
      ...kind.client,
      ...(isShadow ? { password: `${key(1, 32)}:${key(3, 32)}` } : { uuid: ids.bob, password: ids.bob }),
    };
    const ann = await dial(kind, server.port, origin.port);
    const bob = await dial({ ...kind, client: other }, server.port, origin.port);
    for (const stream of [ann, bob]) await converse(stream);
    assert.equal(server.kept.length, 2);
    const cut = Promise.race([outcome(ann), once(ann, "end")]);
    const credential = isShadow ? key(3, 32) : ids.bob;
    const flow = "flow" in kind.client ? String(kind.client.flow) : null;
    server.inbound.replaceUsers([{ id: "bob", credential, flow }]);
    await cut;
    await until("it has ended", () => server.ended.length === 1);
    await echoed(bob, 100_000);
    // What a session that is over was held by has no one's slot any more.
    server.inbound.replaceUsers([]);
    await until("both have ended", () => server.ended.length === 2);
    for (const stream of [ann, bob]) stream.destroy();
  });
}

for (const name of ["VMess", "Shadowsocks 2022", "older Shadowsocks"]) {
  test(`${name}: a fault behind the handshake is not told from silence`, { skip }, async () => {
    const kind = KINDS[name] as Kind;
    await using server = await open(kind);
    await using origin = await openTcpOrigin(echo);
    let wire: Socket | null = null;
    const dialer = {
      ...directDialer,
      async connect(...asked: Parameters<typeof directDialer.connect>) {
        return (wire = (await directDialer.connect(...asked)) as Socket);
      },
    };
    const stream = await dial(kind, server.port, origin.port, dialer);
    await converse(stream);
    const socket = wire as Socket | null;
    assert.ok(socket !== null);
    socket.write(Buffer.alloc(70_000, 0xa5)); // longer than any chunk
    await until("the session has ended", () => server.ended.length === 1);
    socket.write(Buffer.alloc(4_000, 0xa5));
    await delay(50);
    assert.equal(socket.readyState, "open");
    const ended = once(socket, "end");
    socket.end();
    await ended;
    stream.destroy();
  });
}

for (const name of [
  "Shadowsocks 2022",
  "VMess in TLS",
  "VLESS with Vision",
  "VLESS in REALITY",
  "Trojan",
  "VMess in TLS in WebSocket",
])
  for (const stage of ["asked", "relayed"])
    test(`${name}: a worker that dies ends its clients, ${stage}, and nothing else`, { skip }, async () => {
      const kind = KINDS[name] as Kind;
      using killer = new WorkerKiller();
      await using server = await open(kind);
      await using origin = await openTcpOrigin(echo);
      let asked: StreamSession | null = null;
      if (stage === "asked") server.instead = (session) => void (asked = session);
      const stream = await dial(kind, server.port, origin.port);
      if (stage === "asked") stream.write("ping");
      else await converse(stream);
      await until("it is kept", () => server.kept.length === 1);
      stream.resume();
      const gone = Promise.race([outcome(stream), once(stream, "end")]);
      await killer.kill("relay");
      await gone;
      if (stage === "relayed") await until("it has ended", () => server.ended.length === 1);
      const session = asked as StreamSession | null;
      if (session === null) return;
      await until("nothing is left of it", () => session.stream.destroyed);
      session.reply(new Error("too late"));
      session.offloaded?.worker.reset();
    });
