/** The client of TUIC on real sockets, against a server in the same process. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { describe, test } from "node:test";
import type { Datagram, DatagramFlow } from "#core/session.ts";
import { ANSWERS_LATE } from "#core/stream.ts";
import { toDestination } from "#net/address/ip.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { tuic } from "#protocols/tuic/index.ts";
import { PeerClosed } from "#transport/quic/connection-end.ts";
import { openTestOutbound } from "../support/inbound-env.ts";
import { quicCertificate } from "../support/quic-tls.ts";
import { literalsOnly } from "../support/resolvers.ts";
import { openTuicServer, TUIC_PASSWORD, TUIC_UUID } from "../support/tuic-server.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const TO = toDestination("origin.test", 80);
const context = () => ({ signal: AbortSignal.timeout(10_000), metadata: null });

const openNode = (port: number, more: object = {}) =>
  openTestOutbound(
    tuic,
    {
      server: "127.0.0.1",
      port,
      uuid: TUIC_UUID,
      password: TUIC_PASSWORD,
      "skip-cert-verify": true,
      ...more,
    },
    openDirectDialer({ resolver: literalsOnly }),
  );

/** The next datagrams of a flow, copied. */
function datagramsOf(flow: DatagramFlow): Datagram[] {
  const came: Datagram[] = [];
  flow.receive(({ payload, destination }) => void came.push({ payload: Buffer.from(payload), destination }));
  return came;
}

describe("the client of TUIC", { skip: SKIP }, () => {
  test("one connection carries streams, which end in each direction by itself", async () => {
    await using server = await openTuicServer();
    await using node = await openNode(server.port);
    const payload = randomBytes(300_000);
    const echo = async () => {
      const stream = await node.connect(TO, context());
      stream.end(payload);
      const pieces: Buffer[] = [];
      for await (const piece of stream) pieces.push(piece as Buffer);
      assert.ok(Buffer.concat(pieces).equals(payload));
    };
    await Promise.all([echo(), echo(), echo()]);
    assert.equal(server.connections.length, 1);
    assert.deepEqual([...new Set(server.asked)], ["0501000b6f726967696e2e746573740050"]);
    assert.match(server.commands[0] ?? "", /^0500b831381d63244d53ad4f8cda48b30811[0-9a-f]{64}$/);
  });

  for (const mode of ["native", "quic"] as const)
    test(`datagrams in mode ${mode}: two flows, long ones too, and the end of a flow is told`, async () => {
      await using server = await openTuicServer();
      await using node = await openNode(server.port, { "udp-relay-mode": mode });
      const [first, second] = [await node.associate(TO, context()), await node.associate(TO, context())];
      const [toFirst, toSecond] = [datagramsOf(first), datagramsOf(second)];
      const payload = randomBytes(4000);
      first.send({ payload, destination: TO });
      second.send({ payload: Buffer.from("b"), destination: toDestination("192.0.2.1", 53) });
      await until("both answers", () => toFirst.length === 1 && toSecond.length === 1);
      assert.deepEqual(toFirst, [{ payload, destination: TO }]);
      assert.deepEqual(toSecond[0]?.destination, toDestination("192.0.2.1", 53));
      const packets = server.commands.filter((command) => command.startsWith("0502"));
      assert.equal(packets.length, mode === "quic" ? 2 : 5);
      await first[Symbol.asyncDispose]();
      await until("the end of the flow", () => server.commands.includes("05030000"));
    });

  test("heartbeats while something is open, and the end of the node is told", async () => {
    await using server = await openTuicServer();
    const node = await openNode(server.port, { "heartbeat-interval": 20 });
    const stream = await node.connect(TO, context());
    await until("two heartbeats", () => server.commands.filter((command) => command === "0504").length >= 2);
    stream.resume();
    stream.end("x");
    await once(stream, "close");
    await node[Symbol.asyncDispose]();
    await until("the end at the server", () => server.ends.length === 1);
    assert.ok(server.ends[0] instanceof PeerClosed);
  });

  test("a wrong password fails the streams and is named", async () => {
    await using server = await openTuicServer();
    await using node = await openNode(server.port, { password: "wrong" });
    const stream = await node.connect(TO, context());
    const [error] = await once(stream, "error");
    assert.match(String(error), /0xfffffff1/);
    assert.ok(ANSWERS_LATE in stream);
  });

  test("ip is dialled in place of the server's name, which the certificate is still for", async () => {
    await using server = await openTuicServer();
    const keys = { server: "server.test", ip: "127.0.0.1", "skip-cert-verify": false };
    await using node = await openNode(server.port, { ...keys, fingerprint: quicCertificate.fingerprint });
    (await node.connect(TO, context())).destroy();
    await using other = await openNode(server.port, keys);
    await assert.rejects(other.connect(TO, context()), /certificate/);
  });

  test("beyond max-open-streams there is another connection", async () => {
    await using server = await openTuicServer();
    await using node = await openNode(server.port, { "max-open-streams": 2 });
    const streams = [];
    for (let count = 0; count < 5; count++) streams.push(await node.connect(TO, context()));
    await until("three connections", () => server.connections.length === 3);
    for (const stream of streams) stream.destroy();
  });

  test("a server that allows no further stream is dialled anew for what is new", async () => {
    await using server = await openTuicServer(false, { mostStreams: 2 });
    await using node = await openNode(server.port);
    const within = { signal: AbortSignal.timeout(8000), metadata: null };
    const streams = [];
    for (let count = 0; count < 4; count++) streams.push(await node.connect(TO, within));
    assert.equal(server.connections.length, 2);
    for (const stream of streams) stream.destroy();
    await until("the first connection ends", () => server.ends.length === 1);
  });

  test("a server that is silent is dialled anew for what is new", async () => {
    await using server = await openTuicServer();
    await using node = await openNode(server.port);
    const first = await node.connect(TO, context());
    first.on("error", () => {});
    server.isOnline = false;
    first.write("is anybody there?");
    await until("another connection is dialled", async () => {
      const next = node.connect(TO, { signal: AbortSignal.timeout(50), metadata: null });
      (await next.catch(() => null))?.on("error", () => {}).destroy();
      return server.ports.size === 2;
    });
  });

  test("a node that is disposed of gives its dial up", async () => {
    await using server = await openTuicServer();
    server.isOnline = false;
    const node = await openNode(server.port);
    const dialled = node.connect(TO, context());
    dialled.catch(() => {});
    await until("the dial is under way", () => server.ports.size === 1);
    await node[Symbol.asyncDispose]();
    await assert.rejects(dialled, /aborted|closed/);
  });

  test("a dial that takes too long is a timeout", async () => {
    await using server = await openTuicServer();
    server.isOnline = false;
    await using node = await openNode(server.port, { "request-timeout": 100 });
    await assert.rejects(node.connect(TO, context()), { reason: "timeout", message: /within 100 ms/ });
  });

  test("without SNI the certificate must still be for the server's name", async () => {
    await using server = await openTuicServer();
    const keys = { "disable-sni": true, "skip-cert-verify": false, sni: "server.test" };
    await using node = await openNode(server.port, keys);
    await assert.rejects(node.connect(TO, context()), /certificate/);
  });
});
