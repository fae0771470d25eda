/** What sessions of smux and yamux come in, where workers read their frames, and where the event loop does. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { toDestination } from "#net/address/ip.ts";
import { encodeStreamRequest } from "#transport/mux/request.ts";
import { echoed, outcome, roundTrip } from "../support/client.ts";
import { directDialer } from "../support/direct-accept.ts";
import { openKeptClients, type KeptClients } from "../support/kept-clients.ts";
import { type Kind, KINDS } from "../support/kept-kinds.ts";
import { framesTo, greetingOf, nodeOf, openServer, openTls, requestFor } from "../support/kept-mux.ts";
import { TONGUES } from "../support/mux-frames.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openClient } from "../support/protocol-pair.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP sessions that workers read: needs Linux";
const tongue = TONGUES.smux;
const [one] = tongue.ids as [number];

async function open({ protocol, node = protocol, server, client }: Kind, mux: string) {
  const kept: KeptClients = await openKeptClients(protocol, server);
  const smux = { enabled: true, protocol: mux, "max-connections": 1 };
  const options = { server: "127.0.0.1", port: kept.port, ...client, smux };
  const sockets: Duplex[] = [];
  const dialer = {
    ...directDialer,
    async connect(...asked: Parameters<typeof directDialer.connect>) {
      const socket = await directDialer.connect(...asked);
      sockets.push(socket);
      return socket;
    },
  };
  const outbound = await openClient(node, options, { dialer });
  const dial = async (to: number): Promise<Duplex> => {
    const context = { signal: AbortSignal.timeout(20_000), metadata: null };
    const stream = await outbound.connect(toDestination("127.0.0.1", to), context);
    return stream.on("error", () => {});
  };
  const close = async (): Promise<void> => {
    await outbound[Symbol.asyncDispose]();
    await kept[Symbol.asyncDispose]();
  };
  return { ...kept, kept: kept.kept, ended: kept.ended, sockets, dial, [Symbol.asyncDispose]: close };
}

for (const [name, kind] of Object.entries(KINDS).filter(([name]) => !name.includes("Vision")))
  for (const mux of ["smux", "yamux"])
    test(
      `${mux} in ${name}: streams stay with the worker, and their bytes are counted`,
      { skip },
      async () => {
        await using pair = await open(kind, mux);
        await using origin = await openTcpOrigin(echo);
        const sizes = [1, 5_000, 300_000, 2_000_000];
        await Promise.all(sizes.map(async (size) => await roundTrip(await pair.dial(origin.port), size)));
        await until("they have ended", () => pair.ended.length === sizes.length);
        assert.equal(pair.sockets.length, 1);
        assert.equal(pair.kept.length, sizes.length);
        assert.deepEqual(
          pair.ended.map(({ upload }) => upload).toSorted((a, b) => a - b),
          sizes,
        );
      },
    );

/** What the event loop reads, as it always did. */
async function isServedThere(server: KeptClients, stream: Duplex): Promise<void> {
  await echoed(stream, 100_000);
  assert.equal(server.kept.length, 0);
  assert.equal(server.sessions.length, 1);
  stream.destroy();
}

for (const [name, protocol, smux] of [
  ["h2mux", "h2mux", {}],
  ["padded smux", "smux", { padding: true }],
  ["padded yamux", "yamux", { padding: true }],
] as const)
  test(`${name} is the event loop's`, { skip }, async () => {
    await using server = await openServer();
    await using origin = await openTcpOrigin(echo);
    await using node = await nodeOf(server, protocol, smux);
    await isServedThere(server, await node.connect(origin.port));
  });

test("a preface that comes later, or in pieces, is the event loop's", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  for (const cut of [1, 2]) {
    await using server = await openServer();
    const greeting = greetingOf("smux");
    const socket = await openTls(server);
    socket.write(greeting.subarray(0, -cut));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const request = Buffer.concat([requestFor(origin.port), Buffer.from("ping")]);
    socket.write(
      Buffer.concat([greeting.subarray(-cut), tongue.open(one), tongue.head(one, request.length)]),
    );
    socket.write(request);
    let got = "";
    socket.on("data", (bytes: Buffer) => (got += bytes.toString("latin1")));
    await until("it is answered", () => got.endsWith("ping"));
    assert.deepEqual([server.sessions.length, server.kept.length], [1, 0]);
    socket.destroy();
  }
});

test(
  "a preface that no server knows ends the client, and so does one without padding where that is asked for",
  { skip },
  async () => {
    for (const [options, last] of [
      [{}, Buffer.of(7, 0)],
      [{}, Buffer.of(0, 9)],
      [{ "mux-option": { padding: true } }, Buffer.of(0, 0)],
    ] as const) {
      await using server = await openServer(options);
      const socket = await openTls(server);
      const over = outcome(socket.resume());
      socket.write(Buffer.concat([greetingOf("smux").subarray(0, -2), last, tongue.open(one)]));
      await over;
      assert.equal(server.sessions.length, 0);
    }
  },
);

for (const protocol of ["smux", "yamux"] as const) {
  const [first] = TONGUES[protocol].ids as [number];

  test(
    `${protocol}: datagrams within a session are the event loop's, beside streams of the worker`,
    { skip },
    async () => {
      await using server = await openServer();
      await using origin = await openTcpOrigin(echo);
      await using node = await nodeOf(server, protocol);
      server.onFlow = ({ flow }) => flow.receive((item) => flow.send(item));
      const to = toDestination("127.0.0.1", 53);
      const flow = await node.outbound.associate(to, { signal: AbortSignal.timeout(20_000), metadata: null });
      const got: Buffer[] = [];
      flow.receive(({ payload }) => void got.push(Buffer.from(payload)));
      const sent = Array.from({ length: 20 }, (_, at) => randomBytes(at * 50 + 1));
      for (const payload of sent) flow.send({ payload, destination: to });
      await roundTrip(await node.connect(origin.port), 100_000);
      await until("all are back", () => got.length === sent.length);
      assert.deepEqual(got, sent);
      assert.equal(server.kept.length, 1);
      await flow[Symbol.asyncDispose]();
    },
  );

  test(`${protocol}: TCP Brutal is refused in words`, { skip }, async () => {
    await using server = await openServer();
    const client = await framesTo(server, protocol);
    const destination = toDestination("_brutalbwexchange", 444);
    const request = encodeStreamRequest({ kind: "stream", destination });
    const { open: opened, head } = TONGUES[protocol];
    client.send(opened(first), head(first, request.length), request);
    const words = "TCP Brutal is not available here";
    const answer = await client.got(first, 2 + words.length);
    assert.deepEqual(answer, Buffer.concat([Buffer.of(1, words.length), Buffer.from(words)]));
    await client.expect(`end ${first}`);
    assert.equal(server.sessions.length, 0);
    client.socket.destroy();
  });
}

for (const name of ["VMess", "Shadowsocks 2022", "older Shadowsocks"])
  test(`${name}: a fault within a session is not told from silence`, { skip }, async () => {
    await using pair = await open(KINDS[name] as Kind, "smux");
    await using origin = await openTcpOrigin(echo);
    const stream = await pair.dial(origin.port);
    await echoed(stream, 1000);
    assert.equal(pair.kept.length, 1);
    const [socket = assert.fail()] = pair.sockets;
    socket.write(Buffer.alloc(70_000, 0xa5)); // longer than any chunk
    await until("its stream has ended", () => pair.ended.length === 1);
    assert.equal(socket.destroyed || socket.readableEnded, false);
    const ended = once(socket, "end");
    socket.end();
    await ended;
  });
