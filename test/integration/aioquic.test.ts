/** QUIC with aioquic, both ways, on real sockets: the cases of the interop runner that need no failing network. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { openDatagrams } from "#net/udp/datagram-listener.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import type { QuicClient } from "#transport/quic/client.ts";
import { QuicPorts } from "#transport/quic/server/port.ts";
import { openListener } from "../support/hysteria2-listener.ts";
import { aioquicAbsent, runAioquic, startAioquic, visitByAioquic } from "../support/interop/aioquic.ts";
import { dialQuic } from "../support/quic-dial.ts";
import { echoed, echoing } from "../support/quic-server-network.ts";
import { openEarlyClientTls, openQuicClientTls } from "../support/quic-tls.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? aioquicAbsent() : "SKIP libssl by FFI: only on Linux";
const CASES =
  "transfer multiplexing chacha20 versionnegotiation keyupdate resumption datagram connectionid rebindport rebindaddr";

async function echoes(client: QuicClient, sizes: readonly number[]): Promise<void> {
  const all = sizes.map((size) => randomBytes(size));
  const back = await Promise.all(all.map((bytes) => echoed(client, bytes)));
  for (const [index, bytes] of all.entries()) assert.ok(back[index]?.equals(bytes), `${bytes.length} bytes`);
}

describe("QUIC with aioquic", { skip: SKIP }, () => {
  test("as a client of ours", async () => {
    const at = { ip: LOOPBACK_V4, port: 0 };
    const opened = await openDatagrams({ at, reusePort: false, configure() {} }, new DatagramSockets());
    try {
      new QuicPorts().open(opened.socket, echoing());
      assert.deepEqual(await runAioquic(opened.socket.local.port), CASES.split(" "));
    } finally {
      opened.close();
    }
  });

  test("as a visitor of a hysteria2 listener: a web site", async () => {
    const site = { masquerade: "data:text/plain,nothing to see" };
    await using listener = await openListener(() => assert.fail("a visitor has no session"), site);
    assert.equal(await visitByAioquic(listener.port), "200 nothing to see");
  });

  test("as a server: transfer, many streams, datagrams, new keys, a session that goes on", async () => {
    await using server = await startAioquic(false);
    const openTls = await openQuicClientTls();
    const datagrams: string[] = [];
    const first = await dialQuic(server.port, {
      openTls,
      onDatagram: (payload) => void datagrams.push(Buffer.from(payload).toString()),
    });
    await echoes(first, [1, 100_000, 1_000_000]);
    await echoes(
      first,
      Array.from({ length: 100 }, () => 64),
    );
    first.connection.updateKeys();
    await echoes(first, [20_000]);
    first.connection.sendDatagram(Buffer.from("there and back"));
    await until("the datagram is back", () => datagrams.length === 1);
    assert.deepEqual(datagrams, ["there and back"]);
    assert.equal(first.connection.statistics.keyUpdates, 1);
    first.close(0);
    const second = await dialQuic(server.port, { openTls });
    await echoes(second, [1000]);
    assert.deepEqual(
      [first, second].map(({ connection }) => connection.statistics.isResumed),
      [false, true],
    );
    second.close(0);
  });

  test("as a server that takes 0-RTT", async () => {
    await using server = await startAioquic(false);
    const early = { openTls: openEarlyClientTls(), startsEarly: true };
    const first = await dialQuic(server.port, early);
    await echoes(first, [1000]);
    first.close(0);
    const second = await dialQuic(server.port, early);
    assert.equal(second.connection.isEarly, true);
    await echoes(second, [1, 20_000, 3]);
    assert.equal(second.connection.statistics.isEarlyAccepted, true);
    second.close(0);
  });

  test("as a server that asks for the address first", async () => {
    await using server = await startAioquic(true);
    const client = await dialQuic(server.port);
    await echoes(client, [1, 50_000]);
    client.close(0);
  });
});
