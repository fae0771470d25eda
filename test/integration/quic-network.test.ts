/** QUIC connections over a network inside the test, whose clock, losses and order are the test's. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { Brutal } from "#transport/quic/congestion/brutal.ts";
import { bytesOf, echo, echoAll, Echoed } from "../support/quic-echo.ts";
import { runSchedule } from "../support/quic-schedule.ts";
import { openQuicServerTls } from "../support/quic-tls.ts";
import { type LinkOptions, type NetworkPeer, QuicNetwork, seededRandom } from "../support/quic-network.ts";
import { runs } from "../support/runs.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const PLAIN: LinkOptions = { delayMs: 10 };

describe("QUIC on a network of the test", { skip: SKIP }, () => {
  test("transfer: streams of several sizes at once, and the largest datagram that the way takes", async () => {
    const network = await QuicNetwork.open({ up: PLAIN, down: { ...PLAIN, mtu: 1360 } });
    await echoAll(network, [0, 1, 1000, 100_000, 300_000]);
    assert.equal(network.client.made.statistics.datagramBytes, 1452);
    await network.run(() => network.server.made.statistics.datagramBytes === 1350);
  });

  test("behind an outage datagrams are as long as before it; a way that takes less has its own size", async () => {
    const network = await QuicNetwork.open({ up: PLAIN, down: PLAIN });
    await echoAll(network, [100_000]);
    const { made } = network.client;
    const again = (): Echoed => {
      const stream = made.open(true);
      assert.ok(stream !== null);
      return new Echoed(stream, bytesOf(seededRandom(8), 200_000));
    };
    const size = (): number => made.statistics.datagramBytes;
    assert.equal(size(), 1452);

    network.up = { ...PLAIN, loss: 1 };
    const late = again();
    await network.run(() => size() === 1200);
    network.up = PLAIN;
    await network.run(() => late.isDone && size() === 1452);
    late.check();

    network.up = { ...PLAIN, mtu: 1300 };
    const narrow = again();
    await network.run(() => narrow.isDone && size() === 1280);
    narrow.check();
  });

  test("1,500 small streams, more than the peer allows at once", async () => {
    const network = await QuicNetwork.open({
      up: PLAIN,
      down: PLAIN,
      server: { numbers: { maxStreamsBidi: 100 } },
    });
    await echoAll(
      network,
      Array.from({ length: 1500 }, (_, index) => index % 40),
    );
  });

  test("small windows hold a transfer back, and do not stop it", async () => {
    const numbers = {
      maxData: 20_000,
      maxStreamDataBidiLocal: 9_000,
      maxStreamDataBidiRemote: 9_000,
    };
    const network = await QuicNetwork.open({
      up: PLAIN,
      down: PLAIN,
      client: { numbers },
      server: { numbers },
    });
    await echoAll(network, [200_000, 50_000]);
  });

  test("every cipher suite", async () => {
    for (const suite of ["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]) {
      const openTls = openQuicServerTls({ ciphers: `${suite}:AES128-SHA` });
      await echoAll(await QuicNetwork.open({ up: PLAIN, down: PLAIN, server: { openTls } }), [50_000]);
    }
  });

  test("random schedules: loss, doubles, damage and another order, each transfer checked by its hash", async () => {
    const count = runs(1000);
    for (let seed = 1; seed <= count; seed++) await runSchedule(seed);
  });

  test("key updates of both sides while bytes are on their way", async () => {
    const network = await QuicNetwork.open({
      up: { ...PLAIN, jitterMs: 3 },
      down: { ...PLAIN, jitterMs: 3 },
    });
    network.server.onStream = echo;
    let done: Echoed | null = null;
    network.client.onConnected = () => {
      const stream = network.client.made.open(true);
      assert.ok(stream !== null);
      done = new Echoed(stream, bytesOf(seededRandom(3), 400_000));
    };
    let turn = 0;
    await network.run(() => {
      if (++turn % 150 === 0) (turn % 300 === 0 ? network.client : network.server).connection?.updateKeys();
      return done?.isDone === true;
    });
    assert.ok(network.client.made.statistics.keyUpdates >= 2);
    assert.equal(network.client.made.statistics.keyUpdates, network.server.made.statistics.keyUpdates);
  });

  test("a key update behind a few packets: none of them is lost", async () => {
    const network = await QuicNetwork.open({ up: { delayMs: 10 }, down: { delayMs: 10 } });
    await echoAll(network, [10]);
    network.client.made.updateKeys();
    const stream = network.client.made.open(true);
    assert.ok(stream !== null);
    const echoed = new Echoed(stream, Buffer.from("in the next phase"));
    await network.run(() => echoed.isDone);
    echoed.check();
    assert.equal(network.server.made.statistics.keyUpdates, 1);
    assert.equal(network.client.made.statistics.lostPackets, 0);
    assert.equal(network.server.made.statistics.lostPackets, 0);
  });

  test("a server that has let go of TLS goes on, updates keys, and exports none", async () => {
    const network = await QuicNetwork.open({ up: { delayMs: 10 }, down: { delayMs: 10 } });
    let releasedAtMs = 0;
    network.server.onConnected = () => {
      const { made } = network.server;
      made.releaseTls();
      assert.throws(() => made.exportKey(Buffer.of(1), Buffer.of(2), 32), /no key/);
      releasedAtMs = network.nowMs;
    };
    await echoAll(network, [400_000]);
    network.client.made.updateKeys();
    await network.run(() => network.server.made.statistics.keyUpdates > 0);
    assert.ok(releasedAtMs > 0);
    assert.ok(network.client.made.statistics.keyUpdates > 0);
  });

  test("datagrams arrive or are lost, and are not sent again", async () => {
    const network = await QuicNetwork.open({ up: { ...PLAIN, loss: 0.1 }, down: PLAIN });
    network.client.onConnected = () => {
      for (let index = 0; index < 200; index++)
        network.client.made.sendDatagram(Buffer.from(`datagram ${index} `.padEnd(900, ".")));
    };
    await network.run(() => network.client.isConnected && network.nowMs > 3000, 20_000).catch(() => {});
    const came = network.server.datagrams.map(String);
    assert.equal(new Set(came).size, came.length, "none came twice");
    assert.ok(came.length > 140 && came.length < 200, `${came.length} of 200`);
  });

  test("what a server sends to an address that is not shown to be the client's is three times what came", async () => {
    const network = await QuicNetwork.open({ up: PLAIN, down: PLAIN });
    await network.run(() => network.server.sentDatagrams > 0);
    network.up = { ...PLAIN, loss: 1 };
    await network.run(() => network.nowMs > 8000).catch(() => {});
    const came = network.client.sentBytes;
    assert.ok(network.server.sentBytes <= 3 * 2400, `${network.server.sentBytes} bytes for ${came}`);
    assert.ok(!network.server.isConnected);
  });

  test("a PING is acknowledged as it comes, and bytes of the application when their answer may have gone along", async () => {
    const network = await QuicNetwork.open({
      up: { delayMs: 10 },
      down: { delayMs: 10 },
      client: { keepAliveMs: 1000 },
    });
    network.server.onStream = (stream) => void stream.on("error", () => {}).resume();
    const isFound = (peer: NetworkPeer): boolean => peer.connection?.statistics.datagramBytes === 1452;
    await network.run(() => isFound(network.client) && isFound(network.server));
    const stream = network.client.made.open(true);
    assert.ok(stream !== null);
    const acknowledgedAfter = async (isSent: () => boolean): Promise<number> => {
      const [sent, answered] = [network.client.sentDatagrams, network.server.sentDatagrams];
      await network.run(() => isSent() && network.client.sentDatagrams > sent);
      const atMs = network.nowMs;
      await network.run(() => network.server.sentDatagrams > answered);
      return Math.round(network.nowMs - atMs);
    };
    stream.write("x");
    assert.equal(await acknowledgedAfter(() => true), 10 + 25);
    assert.equal(await acknowledgedAfter(() => true), 10, "of the PING a second later");
  });

  test("a good end, an end by silence, and a peer that is not there", async () => {
    const network = await QuicNetwork.open({ up: PLAIN, down: PLAIN });
    await network.run(() => network.client.isConnected && network.server.isConnected);
    network.client.made.close(0x100, "bye");
    await network.run(() => network.server.closed !== undefined);
    assert.equal(network.client.closed, null);
    assert.match(String(network.server.closed), /closed the connection \(code 0x100: bye\)/);
    const silent = await QuicNetwork.open({ up: PLAIN, down: PLAIN });
    await silent.run(() => silent.client.isConnected && silent.server.isConnected);
    await silent.run(() => silent.client.closed !== undefined);
    assert.match(String(silent.client.closed), /silent/);
    const alone = await QuicNetwork.open({ up: { ...PLAIN, loss: 1 }, down: PLAIN });
    await alone.run(() => alone.client.closed !== undefined);
    assert.match(String(alone.client.closed), /no answer to the handshake/);
  });

  test("a stream that one side destroys is over for both, and the connection lives", async () => {
    const network = await QuicNetwork.open({ up: PLAIN, down: PLAIN });
    let theirs: QuicStream | null = null;
    network.server.onStream = (stream) => {
      theirs ??= stream;
      if (theirs !== stream) echo(stream);
      stream.on("error", () => {});
      stream.resume();
    };
    let second: Echoed | null = null;
    network.client.onConnected = () => {
      const stream = network.client.made.open(true);
      stream?.on("error", () => {});
      stream?.write(Buffer.alloc(100_000));
      setImmediate(() => stream?.destroy());
    };
    await network.run(() => (theirs as QuicStream | null) !== null);
    await new Promise((resolve) => setImmediate(resolve));
    await network.run(() => theirs?.destroyed === true);
    const stream = network.client.made.open(true);
    assert.ok(stream !== null);
    second = new Echoed(stream, Buffer.from("still here"));
    await network.run(() => second.isDone);
    second.check();
  });

  test("bytes of streams that are no longer read give their window back", async () => {
    const numbers = { maxData: 20_000 };
    const network = await QuicNetwork.open({ up: PLAIN, down: PLAIN, client: { numbers } });
    network.server.onStream = (stream) => {
      stream.on("error", () => {});
      stream.resume();
      stream.end(Buffer.alloc(9_000));
    };
    await network.run(() => network.client.isConnected);
    for (let round = 0; round < 8; round++) {
      const stream = network.client.made.open(true);
      assert.ok(stream !== null);
      stream.on("error", () => {});
      stream.end("x");
      await network.run(() => stream.receive?.isComplete === true && stream.isRetired);
      stream.destroy();
    }
  });

  test("Brutal keeps its rate where a twentieth is lost", async () => {
    const link: LinkOptions = { delayMs: 25, loss: 0.05, rate: 2500, queueBytes: 200_000 };
    const network = await QuicNetwork.open({
      up: link,
      down: { delayMs: 25 },
      client: { congestion: new Brutal(1_000_000) },
    });
    let got = 0;
    network.server.onStream = (stream) => {
      stream.on("data", (bytes: Buffer) => (got += bytes.length));
      stream.on("error", () => {});
    };
    let startedAtMs = 0;
    network.client.onConnected = () => {
      startedAtMs = network.nowMs;
      const stream = network.client.made.open(true);
      stream?.on("error", () => {});
      stream?.end(Buffer.alloc(4_000_000));
    };
    await network.run(() => got >= 4_000_000);
    const rate = got / (network.nowMs - startedAtMs);
    assert.ok(rate > 850 && rate < 1050, `${rate} bytes a millisecond`);
  });

  test("a server that chooses no protocol is left (RFC 9001 §8.1)", async () => {
    const openTls = openQuicServerTls({ alpn: [] });
    const network = await QuicNetwork.open({ up: PLAIN, down: PLAIN, server: { openTls } });
    await network.run(() => network.client.closed !== undefined);
    assert.match(String(network.client.closed), /no protocol/);
    assert.equal(network.client.isConnected, false);
  });
});
