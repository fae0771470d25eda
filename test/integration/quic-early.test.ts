/** 0-RTT (RFC 9001 §4.6), the case zerortt of the QUIC interop runner and what may go wrong with it. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import type { QuicClient } from "#transport/quic/client.ts";
import type { QuicServerConnection } from "#transport/quic/server/connection.ts";
import type { QuicServerOptions } from "#transport/quic/server/endpoint.ts";
import { readHeader, RETRY, ZERO_RTT } from "#transport/quic/wire/header.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import { seededRandom } from "../support/quic-network.ts";
import { echo, echoed, endpointAt, ServerNetwork } from "../support/quic-server-network.ts";
import { openEarlyClientTls, openQuicServerTls } from "../support/quic-tls.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";

/** Ports at which a client of these tests is. */
let port = 5000;
const next = () => ({ endpoint: endpointAt("127.0.0.1", ++port) });

/** Of a datagram's first packet. */
const typeOf = (datagram: Uint8Array): number => readHeader(new WireReader().reset(datagram)).type;

/** An echo server that takes 0-RTT, its connections, and for each stream whether the handshake was done. */
function serving(network: ServerNetwork, openTls = openQuicServerTls({ isEarly: true })) {
  const clients: QuicServerConnection[] = [];
  const streams: boolean[] = [];
  const options: Partial<QuicServerOptions> = {
    openTls,
    onConnection(client) {
      clients.push(client);
      return {
        onStream(stream) {
          if (stream.send !== null) streams.push(client.isConnected);
          echo(stream);
        },
        onDatagram() {},
      };
    },
  };
  network.serve(options);
  return { clients, streams };
}

/** A connection that leaves a ticket, for those behind it: it goes in front of the first answer. */
async function leaveTicket(network: ServerNetwork, openTls = openEarlyClientTls()) {
  const dial = (): Promise<QuicClient> => network.dial(next(), { openTls, startsEarly: true });
  const first = await dial();
  assert.equal(String(await echoed(first, Buffer.from("first"))), "first");
  first.close(0);
  return dial;
}

describe("0-RTT", { skip: SKIP }, () => {
  test("zerortt: forty streams go with the first flight, and are answered", async () => {
    await using network = new ServerNetwork();
    const { streams } = serving(network);
    const dial = await leaveTicket(network);
    streams.length = 0;
    const client = await dial();
    assert.equal(client.connection.isEarly, true);
    const sent = Array.from({ length: 40 }, () => randomBytes(32));
    const back = await Promise.all(sent.map((bytes) => echoed(client, bytes)));
    for (const [at, bytes] of sent.entries()) assert.ok(back[at]?.equals(bytes));
    const { isEarlyAccepted, isResumed } = client.connection.statistics;
    assert.deepEqual([isEarlyAccepted, isResumed], [true, true]);
    assert.equal(streams.filter((isDone) => !isDone).length, 40);
    assert.equal(String(await echoed(client, Buffer.from("behind it"))), "behind it");
  });

  test("a server that has lost its sessions gets all by the handshake's keys", async () => {
    await using network = new ServerNetwork();
    serving(network);
    const dial = await leaveTicket(network);
    const { streams } = serving(network);
    const client = await dial();
    assert.equal(client.connection.isEarly, true);
    const bytes = randomBytes(50_000);
    assert.ok((await echoed(client, bytes)).equals(bytes));
    assert.equal(client.connection.statistics.isEarlyAccepted, false);
    assert.deepEqual(streams, [true]);
  });

  test("a ticket is good once: who repeats a client's packets gets nothing done a second time", async () => {
    await using network = new ServerNetwork();
    const openTls = openQuicServerTls({ isEarly: true });
    serving(network, openTls);
    const dial = await leaveTicket(network);
    const flight: Buffer[] = [];
    network.toServer = (datagram) => (flight.push(datagram), datagram);
    const client = await dial();
    assert.equal(String(await echoed(client, Buffer.from("once"))), "once");
    assert.ok(flight.some((datagram) => typeOf(datagram) === ZERO_RTT));
    client.close(0);
    network.forget(); // the ids are free: nothing but the ticket stands in the way
    const { streams, clients } = serving(network, openTls);
    const elsewhere = endpointAt("127.0.0.9", 9);
    for (const datagram of flight) network.arrive(datagram, elsewhere);
    assert.ok(network.sentTo(elsewhere).length > 0); // its handshake has begun
    assert.deepEqual([streams, clients], [[], []]);
  });

  test("what comes before the packet that it belongs to, and what is lost, arrives once", async () => {
    await using network = new ServerNetwork();
    serving(network);
    const random = seededRandom(7);
    const openTls = openEarlyClientTls();
    for (let round = 0; round < 15; round++) {
      network.toServer = network.toClient = (datagram) => datagram;
      const dial = await leaveTicket(network, openTls);
      network.toServer = network.toClient = (datagram) => (random() < 0.2 ? null : datagram);
      const client = await dial();
      const sent = Array.from({ length: 5 }, () => randomBytes(3000));
      const back = await Promise.all(sent.map((bytes) => echoed(client, bytes)));
      for (const [at, bytes] of sent.entries()) assert.ok(back[at]?.equals(bytes), `round ${round}`);
      client.close(0);
    }
  });

  test("a client that has to show its address first says it again", async () => {
    await using network = new ServerNetwork();
    serving(network);
    const dial = await leaveTicket(network);
    const slow = new AbortController();
    network.toServer = (datagram, { port: from }) =>
      typeOf(datagram) === 0 || from > 5000 ? datagram : null;
    const held = Array.from({ length: 64 }, (_each, at) =>
      network.dial({ endpoint: endpointAt("127.0.0.2", at + 1) }, {}, slow.signal).catch(() => null),
    );
    network.toClient = (datagram, { ip }) => (ip === "127.0.0.2" ? null : datagram);
    await until("all handshakes are under way", () => network.sent.size >= 64);
    const client = await dial();
    assert.equal(String(await echoed(client, Buffer.from("here"))), "here");
    const [answer = Buffer.alloc(0)] = network.sentTo(endpointAt("127.0.0.1", port));
    assert.equal(typeOf(answer), RETRY);
    slow.abort(new Error("the test ends"));
    await Promise.all(held);
  });
});
