/** The cases of the QUIC interop runner that need a network which fails, between two connections of ours. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LOOPBACK_V4, ipOf } from "#net/address/ip.ts";
import { makeCertificate } from "../support/certificate.ts";
import { bytesOf, echo, echoAll, Echoed } from "../support/quic-echo.ts";
import { type LinkOptions, QuicNetwork, seededRandom } from "../support/quic-network.ts";
import { openQuicClientTls, openQuicServerTls } from "../support/quic-tls.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const PLAIN: LinkOptions = { delayMs: 15, rate: 1250, queueBytes: 40_000 };
/** It offers a post-quantum group, whose share alone has 1,216 bytes. */
const HELLO_DATAGRAMS = 2;
const FAR_IDLE = { numbers: { idleTimeoutMs: 600_000 } };

async function echoOver(link: LinkOptions, seed: number, sizes: readonly number[]): Promise<QuicNetwork> {
  const network = await QuicNetwork.open({ seed, up: link, down: link, client: FAR_IDLE, server: FAR_IDLE });
  return echoAll(network, sizes);
}

/** One stream with so many bytes, echoed; `on` is called at each turn of the network until all is back. */
async function transfer(network: QuicNetwork, bytes: number, on: () => void): Promise<void> {
  network.server.onStream = echo;
  let echoed: Echoed | null = null;
  network.client.onConnected = () => {
    const stream = network.client.made.open(true);
    assert.ok(stream !== null);
    echoed = new Echoed(stream, bytesOf(seededRandom(5), bytes));
  };
  await network.run(() => {
    on();
    return echoed?.isDone === true;
  });
  (echoed as Echoed | null)?.check();
}

describe("cases of the QUIC interop runner", { skip: SKIP }, () => {
  test("longrtt: a second and a half from question to answer", async () => {
    const network = await echoOver({ delayMs: 750 }, 1, [100_000]);
    assert.ok(network.nowMs < 20_000, `${network.nowMs} ms`);
  });

  test("resumption: a node's next connection shows no certificate, and a server that lost its keys does again", async () => {
    const openTls = await openQuicClientTls();
    const server = { openTls: openQuicServerTls() };
    const again: [boolean, number][] = [];
    for (const each of [server, server, { openTls: openQuicServerTls() }]) {
      const link = { up: PLAIN, down: PLAIN };
      const network = await QuicNetwork.open({ ...link, client: { openTls }, server: each });
      await transfer(network, 1000, () => {});
      again.push([network.client.made.statistics.isResumed, network.server.sentBytes]);
    }
    assert.deepEqual(
      again.map(([isResumed]) => isResumed),
      [false, true, false],
    );
    const [first = 0, second = 0] = again.map(([, bytes]) => bytes);
    assert.ok(first - second > 300, `${first} and ${second} bytes`);
  });

  test("blackhole: nothing arrives for two seconds", async () => {
    const network = await QuicNetwork.open({ up: PLAIN, down: PLAIN });
    await transfer(network, 1_000_000, () => {
      const isDark = network.nowMs > 300 && network.nowMs < 2300;
      network.up = network.down = { ...PLAIN, loss: isDark ? 1 : 0 };
    });
    assert.ok(network.nowMs < 10_000, `${network.nowMs} ms`);
  });

  test("handshakeloss: fifty handshakes where three of ten datagrams are lost", async () => {
    for (let seed = 1; seed <= 50; seed++) {
      const network = await echoOver({ ...PLAIN, loss: 0.3 }, seed, [1000]);
      assert.ok(network.nowMs < 60_000, `seed ${seed}: ${network.nowMs} ms`);
    }
  });

  test("handshakecorruption: fifty handshakes where three of ten datagrams are damaged", async () => {
    for (let seed = 1; seed <= 50; seed++) await echoOver({ ...PLAIN, damaged: 0.3 }, seed, [1000]);
  });

  test("transferloss: two of a hundred datagrams are lost", async () => {
    await echoOver({ ...PLAIN, loss: 0.02 }, 3, [2_000_000]);
  });

  test("transfercorruption: two of a hundred datagrams are damaged", async () => {
    await echoOver({ ...PLAIN, damaged: 0.02 }, 4, [2_000_000]);
  });

  test("amplificationlimit: a certificate of nine kilobytes, and the server's first datagram is lost", async () => {
    const names = Array.from({ length: 300 }, (_, index) => `a-name-that-is-long-${index}.server.test`);
    const certificate = makeCertificate({ names: ["server.test", ...names] });
    const network = await QuicNetwork.open({
      up: PLAIN,
      down: { ...PLAIN, loss: 1 },
      client: { openTls: await openQuicClientTls({ fingerprint: certificate.fingerprint }) },
      server: { openTls: openQuicServerTls({ certificate }) },
    });
    const { client, server } = network;
    let unshown = 0;
    await transfer(network, 1000, () => {
      if (network.dropped > 0) network.down = PLAIN;
      // Behind its hello the client sends packets that only who has received the server's can make.
      if (client.sentDatagrams <= HELLO_DATAGRAMS) unshown = server.sentBytes;
    });
    assert.ok(unshown > 2400 && unshown <= 3 * HELLO_DATAGRAMS * 1200, `${unshown} bytes`);
    assert.ok(server.sentBytes > 9000);
  });

  for (const [name, second] of [
    ["rebind-port: the port of the client changes in the middle", { ip: LOOPBACK_V4, port: 4001 }],
    ["rebind-addr: its address does", { ip: ipOf("192.0.2.9"), port: 4000 }],
  ] as const)
    test(name, async () => {
      const first = { ip: LOOPBACK_V4, port: 4000 };
      const network = await QuicNetwork.open({ up: PLAIN, down: PLAIN });
      const { client, server } = network;
      client.address = first;
      await transfer(network, 1_000_000, () => {
        client.address = network.nowMs > 500 ? second : first;
      });
      assert.deepEqual(server.made.peer, second);
    });
});
