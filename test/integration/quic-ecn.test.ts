/** ECN of QUIC (RFC 9000 §13.4): on ways inside the test that keep, change or drop marks, and on sockets. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { LOOPBACK_V4, parseIp } from "#net/address/ip.ts";
import { openDatagrams } from "#net/udp/datagram-listener.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import { DirectFlow } from "#net/udp/direct-flow.ts";
import { QuicClient } from "#transport/quic/client.ts";
import { Bbr } from "#transport/quic/congestion/bbr.ts";
import { Brutal } from "#transport/quic/congestion/brutal.ts";
import { Cubic } from "#transport/quic/congestion/cubic.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";
import type { QuicServerConnection } from "#transport/quic/server/connection.ts";
import { QuicPorts } from "#transport/quic/server/port.ts";
import { echoAll } from "../support/quic-echo.ts";
import { echoed, echoing } from "../support/quic-server-network.ts";
import { openQuicClientTls } from "../support/quic-tls.ts";
import { until } from "../support/until.ts";
import { type LinkOptions, type NetworkOptions, QuicNetwork } from "../support/quic-network.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const PLAIN: LinkOptions = { delayMs: 10 };
/** 20 Mbit/s with a queue that holds 60 ms of it, or marks what comes behind 16 ms of it. */
const NARROW: LinkOptions = { delayMs: 10, rate: 2500, queueBytes: 150_000 };
const MARKING: LinkOptions = { ...NARROW, marksAbove: 40_000 };
const both = { client: { usesEcn: true }, server: { usesEcn: true } };

const open = (up: LinkOptions, more: Partial<NetworkOptions> = {}) =>
  QuicNetwork.open({ up, down: PLAIN, ...both, ...more });

describe("ECN on a network of the test", { skip: SKIP }, () => {
  test("both sides mark their packets where marks arrive and are told", async () => {
    const network = await echoAll(await open(PLAIN), [200_000]);
    for (const { made } of [network.client, network.server]) {
      const { isMarking, congestionMarks, lostPackets } = made.statistics;
      assert.deepEqual([isMarking, congestionMarks, lostPackets], [true, 0, 0]);
    }
  });

  test("a connection whose socket has no marks sends none, and a peer that has them gives them up", async () => {
    const network = await echoAll(
      await open(PLAIN, { server: {}, down: { ...PLAIN, marks: "cleared" } }),
      [200_000],
    );
    assert.equal(network.client.made.statistics.isMarking, true, "the server tells what it is shown");
    assert.equal(network.server.made.statistics.isMarking, false);
  });

  for (const marks of ["cleared", "ect1", "dropped"] as const)
    test(`nothing is marked on a way by which marks are ${marks}, and all arrives`, async () => {
      const network = await echoAll(await open({ ...PLAIN, marks }), [200_000]);
      const { isMarking, lostPackets } = network.client.made.statistics;
      assert.equal(isMarking, false);
      assert.equal(network.server.made.statistics.isMarking, true, "the other way is as it should be");
      assert.ok(lostPackets <= (marks === "dropped" ? 30 : 0), `${lostPackets} lost`);
    });

  for (const [name, make] of [
    ["cubic", () => new Cubic()],
    ["new_reno", () => new NewReno()],
    ["bbr", () => new Bbr()],
  ] as const)
    test(`${name}: a queue that marks loses nothing of what one that does not overflows with`, async () => {
      const lossOf = async (up: LinkOptions): Promise<readonly [number, number]> => {
        const network = await open(up, { client: { usesEcn: true, congestion: make() } });
        await echoAll(network, [1_500_000]);
        return [network.dropped, network.client.made.statistics.congestionMarks];
      };
      const [dropped, noMarks] = await lossOf(NARROW);
      const [droppedThere, marks] = await lossOf(MARKING);
      assert.deepEqual([noMarks, droppedThere], [0, 0], `${dropped} were dropped without marks`);
      if (name !== "bbr") assert.ok(dropped > 0 && marks > 0, `${dropped} dropped, ${marks} marked`);
    });

  test("a way that marks everything slows Cubic to its least window, and Brutal not at all", async () => {
    const timeOf = async (marks: "ce" | undefined, congestion: Cubic | Brutal): Promise<number> => {
      const up = { ...PLAIN, ...(marks === undefined ? {} : { marks }) };
      const network = await open(up, { client: { usesEcn: true, congestion } });
      await echoAll(network, [1_000_000]);
      return network.nowMs;
    };
    const cubic = [await timeOf(undefined, new Cubic()), await timeOf("ce", new Cubic())] as const;
    assert.ok(cubic[1] > 5 * cubic[0], `${cubic.join(" and ")} ms`);
    const rate = 2_000_000;
    const brutal = [await timeOf(undefined, new Brutal(rate)), await timeOf("ce", new Brutal(rate))] as const;
    assert.ok(brutal[1] < 1.1 * brutal[0], `${brutal.join(" and ")} ms`);
  });

  test("behind a move to another address the way is tested anew", async () => {
    const network = await open(PLAIN);
    network.client.address = { ip: "192.0.2.1", port: 1 } as never;
    await echoAll(network, [50_000]);
    const { made } = network.server;
    assert.equal(made.statistics.isMarking, true);
    network.client.address = { ip: "192.0.2.2", port: 1 } as never;
    const stream = network.client.made.open(true);
    stream?.on("error", () => {}).end(Buffer.alloc(50_000));
    let left = 50_000;
    stream?.on("data", (bytes: Buffer) => (left -= bytes.length));
    await network.run(() => left === 0);
    assert.equal(made.statistics.isMarking, true);
    assert.equal(made.peer?.ip, "192.0.2.2");
  });
});

test("one mark a round trip shrinks a window, as one loss does", () => {
  for (const made of [new Cubic(), new NewReno()]) {
    const first = made.windowBytes;
    made.onMarked(100, 50);
    const second = made.windowBytes;
    assert.ok(second < first);
    made.onMarked(110, 90);
    assert.equal(made.windowBytes, second, "of packets that went before the first was heard of");
    made.onMarked(220, 150);
    assert.ok(made.windowBytes < second);
  }
});

for (const ip of [LOOPBACK_V4, parseIp("::1")])
  test(`marks of datagrams and of runs go and come by a socket, at ${ip}`, { skip: SKIP }, async () => {
    assert.ok(ip !== null);
    const seen: string[] = [];
    const sockets = new DatagramSockets();
    const make = (on: (payload: Buffer, ecn: number) => void) =>
      openDatagrams({ at: { ip, port: 0 }, reusePort: false, configure() {} }, sockets).then((opened) => {
        opened.socket.receive((payload, _from, ecn) => on(payload, ecn));
        return opened;
      });
    const one = await make((payload, ecn) => void seen.push(`${payload.length} ${ecn}`));
    const other = await make(() => {});
    try {
      assert.equal(one.socket.useEcn?.(), true);
      const to = one.socket.local;
      other.socket.send(Buffer.alloc(10), to);
      other.socket.send(Buffer.alloc(11), to, true);
      other.socket.sendRun(Buffer.alloc(350), 100, to, true);
      other.socket.sendRun(Buffer.alloc(250), 100, to);
      other.socket.send(Buffer.alloc(100), to);
      other.socket.send(Buffer.alloc(100), to, true);
      const run = ["100 2", "100 2", "100 2", "50 2", "100 0", "100 0", "50 0", "100 0", "100 2"];
      await until("all of them", () => seen.length === 2 + run.length);
      assert.deepEqual(seen, ["10 0", "11 2", ...run]);
    } finally {
      one.close();
      other.close();
    }
  });

test("a node's flow and a listener's socket: both sides find that marks arrive", { skip: SKIP }, async () => {
  const sockets = new DatagramSockets();
  const { socket, close } = await openDatagrams(
    { at: { ip: LOOPBACK_V4, port: 0 }, reusePort: false, configure() {} },
    sockets,
  );
  const made: QuicServerConnection[] = [];
  const options = echoing();
  new QuicPorts().open(socket, {
    ...options,
    onConnection: (one) => (made.push(one), options.onConnection(one)),
  });
  const { ip, port } = socket.local;
  const client = await QuicClient.open(
    {
      node: "client",
      flow: new DirectFlow({
        resolver: null as never, // addresses alone
        families: { ipVersion: "ipv4", ipv6: false },
        resolvesAnew: false,
        sockets: null,
        datagrams: sockets,
        reach: null,
        noted: null,
      }),
      server: { host: null, ip, port },
      filter: null,
      ciphers: options.ciphers,
      openTls: await openQuicClientTls(),
      congestion: new NewReno(),
      onDatagram() {},
      onStream: (stream) => stream.destroy(),
    },
    AbortSignal.timeout(10_000),
  );
  try {
    const bytes = randomBytes(300_000);
    assert.deepEqual(await echoed(client, bytes), bytes);
    assert.deepEqual(
      [client.connection, made[0]?.connection].map((one) => one?.statistics.isMarking),
      [true, true],
    );
  } finally {
    client.close(0);
    close();
  }
});
