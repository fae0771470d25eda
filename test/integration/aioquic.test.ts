/** QUIC with aioquic, both ways, on real sockets: the cases of the interop runner that need no failing network. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { DatagramFlow } from "#core/session.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { openDatagrams } from "#net/udp/datagram-listener.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import type { QuicClient } from "#transport/quic/client.ts";
import type { QuicServerOptions } from "#transport/quic/server/endpoint.ts";
import { QuicPorts } from "#transport/quic/server/port.ts";
import { openListener } from "../support/hysteria2-listener.ts";
import { aioquicAbsent, runAioquic, startAioquic, visitByAioquic } from "../support/interop/aioquic.ts";
import { dialQuic } from "../support/quic-dial.ts";
import { echoed, echoing } from "../support/quic-server-network.ts";
import { openEarlyClientTls, openQuicClientTls, openQuicServerTls } from "../support/quic-tls.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? aioquicAbsent() : "SKIP libssl by FFI: only on Linux";
const CASES =
  "transfer multiplexing chacha20 versionnegotiation keyupdate resumption datagram connectionid rebindport rebindaddr";

async function echoes(client: QuicClient, sizes: readonly number[]): Promise<void> {
  const all = sizes.map((size) => randomBytes(size));
  const back = await Promise.all(all.map((bytes) => echoed(client, bytes)));
  for (const [index, bytes] of all.entries()) assert.ok(back[index]?.equals(bytes), `${bytes.length} bytes`);
}

/** As many clients as a server lets begin at once, of each the first datagram alone. */
async function begin64(port: number): Promise<Disposable> {
  const socket = createSocket("udp4");
  const give = new AbortController();
  const { promise: closed } = Promise.withResolvers<void>();
  const openOne = (): Promise<unknown> => {
    let isFirst = true;
    const flow: DatagramFlow = {
      send({ payload }) {
        if (isFirst) socket.send(Buffer.from(payload), port, LOOPBACK_V4);
        isFirst = false;
      },
      receive() {},
      closed,
      async [Symbol.asyncDispose]() {},
    };
    return dialQuic(port, { flow }, give.signal).catch(() => null);
  };
  for (let count = 0; count < 64; count++) void openOne();
  await delay(500);
  return {
    [Symbol.dispose]() {
      give.abort(new Error("the test ends"));
      socket.close();
    },
  };
}

describe("QUIC with aioquic", { skip: SKIP }, () => {
  /** What the cases print of an echo server of ours. */
  async function ofClient(
    cases: readonly string[],
    options: Partial<QuicServerOptions> = {},
    before: (port: number) => Promise<Disposable> | null = () => null,
  ): Promise<readonly string[]> {
    const at = { ip: LOOPBACK_V4, port: 0 };
    const opened = await openDatagrams({ at, reusePort: false, configure() {} }, new DatagramSockets());
    try {
      new QuicPorts().open(opened.socket, { ...echoing(), ...options });
      const { port } = opened.socket.local;
      using _while = await before(port);
      return await runAioquic(port, cases);
    } finally {
      opened.close();
    }
  }

  test("as a client of ours", async () => {
    assert.deepEqual(await ofClient(CASES.split(" ")), CASES.split(" "));
  });

  test("as a client that begins by 0-RTT", async () => {
    const openTls = openQuicServerTls({ isEarly: true });
    assert.deepEqual(await ofClient(["zerortt"], { openTls }), ["zerortt"]);
  });

  test("as a client that has to show its address, because many begin and do not go on", async () => {
    assert.deepEqual(await ofClient(["retry"], {}, begin64), ["retry"]);
  });

  test("as a visitor of a hysteria2 listener: a web site", async () => {
    const site = { masquerade: "data:text/plain,nothing to see" };
    await using listener = await openListener(() => assert.fail("a visitor has no session"), site);
    assert.equal(await visitByAioquic(listener.port), "200 nothing to see");
  });

  test("as a server: transfer, many streams, datagrams, new keys, a session that goes on", async () => {
    await using server = await startAioquic();
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

  test("as a server that knows ChaCha20 alone", async () => {
    await using server = await startAioquic("chacha20");
    const client = await dialQuic(server.port);
    await echoes(client, [1, 50_000, 300_000]);
    client.connection.updateKeys();
    await echoes(client, [20_000]);
    client.close(0);
  });

  test("as a server that takes 0-RTT", async () => {
    await using server = await startAioquic();
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
    await using server = await startAioquic("retry");
    const client = await dialQuic(server.port);
    await echoes(client, [1, 50_000]);
    client.close(0);
  });
});
