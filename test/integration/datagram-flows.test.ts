/** A thousand flows through SOCKS5 associations and DIRECT: bytes, order and counters of each. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Router } from "#core/router.ts";
import type { DatagramSession, Ip } from "#core/session.ts";
import { DatagramSockets, type DatagramSocket, type OnDatagram } from "#net/udp/datagram-socket.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { directOutbound } from "#protocols/direct/index.ts";
import { socks } from "#protocols/socks/index.ts";
import { DatagramBudget } from "#dataplane/udp/limits.ts";
import { serveDatagrams } from "#dataplane/udp/udp-session.ts";
import { LiveTable } from "#dataplane/connections.ts";
import { UDP_IDLE_MS, UDP_SESSION_IDLE_MS } from "#dataplane/timeouts.ts";
import { openTestInbound } from "../support/inbound-env.ts";
import { decisionOf } from "../support/metadata.ts";
import { tableResolver } from "../support/resolvers.ts";
import { openSocksUdp } from "../support/socks-udp.ts";
import { boundDatagrams } from "../support/bound-datagrams.ts";
import { until } from "../support/until.ts";
import { plainServeEnv } from "../support/serve-env.ts";

const CLIENTS = 40;
const DESTINATIONS = 25;
const DATAGRAMS = 8;
const HOST = "127.0.0.1" as Ip;
const HEADER_BYTES = 10;
const sockets = new DatagramSockets();

const BURST_BYTES = 4 << 20;

function core() {
  const live = new LiveTable();
  const direct = directOutbound("DIRECT", openDirectDialer({ resolver: tableResolver({}) }));
  const router: Router = {
    async route({ destination }) {
      await delay(1); // what comes meanwhile waits
      return decisionOf(direct, destination);
    },
  };
  const env = {
    ...plainServeEnv({ router, live }),
    budget: new DatagramBudget(),
    idleMs: UDP_IDLE_MS,
    sessionIdleMs: UDP_SESSION_IDLE_MS,
  };
  const served: Promise<void>[] = [];
  const serve = (session: DatagramSession): void => void served.push(serveDatagrams(session, env));
  return { live, serve, over: () => Promise.all(served) };
}

/** CLIENT(1) DESTINATION(1) NUMBER(1), and as long as its number wants. */
function datagram(client: number, destination: number, number: number): Buffer {
  const bytes = Buffer.alloc(3 + ((number * 331 + destination) % 1_300), client);
  bytes.set([client, destination, number]);
  return bytes;
}

test(`${CLIENTS * DESTINATIONS} flows: every datagram of each, in order, counted to the byte`, async () => {
  const { live, serve, over } = core();
  await using inbound = await openTestInbound(
    socks,
    {},
    { accept: (session) => void (session.network === "udp" && serve(session)) },
  );
  const receivedThere = new Map<string, Buffer[]>();
  const receivedHere = new Map<string, Buffer[]>();
  const note = (into: Map<string, Buffer[]>, payload: Buffer): void => {
    const key = `${payload[0]} ${payload[1]}`;
    into.set(key, [...(into.get(key) ?? []), Buffer.from(payload)]);
  };
  const count = (of: Map<string, Buffer[]>): number =>
    [...of.values()].reduce((sum, list) => sum + list.length, 0);
  const echoes = await Promise.all(
    Array.from({ length: DESTINATIONS }, async () => {
      const answer: OnDatagram = (payload, from) => {
        note(receivedThere, payload);
        echo.send(null, payload, from.ip, from.port);
      };
      const echo: DatagramSocket = await boundDatagrams(sockets, HOST, answer, BURST_BYTES);
      return echo;
    }),
  );
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const association = await openSocksUdp(inbound.port, HOST);
      const onReply: OnDatagram = (bytes) => {
        const payload = bytes.subarray(HEADER_BYTES);
        assert.equal(bytes.readUInt16BE(8), echoes[payload[1] as number]?.port, "the reply says who replied");
        note(receivedHere, payload);
      };
      return { association, socket: await boundDatagrams(sockets, HOST, onReply, BURST_BYTES) };
    }),
  );
  for (let number = 0; number < DATAGRAMS; number++) {
    for (const [client, { socket, association }] of clients.entries())
      for (const [destination, { port }] of echoes.entries()) {
        const head = Buffer.from([0, 0, 0, 1, 127, 0, 0, 1, port >> 8, port & 0xff]);
        socket.send(head, datagram(client, destination, number), HOST, association.port);
      }
    const wanted = (number + 1) * CLIENTS * DESTINATIONS;
    for (const untilMs = performance.now() + 20_000; count(receivedHere) < wanted;) {
      assert.ok(performance.now() < untilMs, `${count(receivedHere)} of ${wanted}`);
      await delay(2);
    }
  }
  let bytes = 0;
  for (let client = 0; client < CLIENTS; client++)
    for (let destination = 0; destination < DESTINATIONS; destination++) {
      const wanted = Array.from({ length: DATAGRAMS }, (_, number) => datagram(client, destination, number));
      bytes += wanted.reduce((sum, { length }) => sum + length, 0);
      assert.deepEqual(receivedThere.get(`${client} ${destination}`), wanted);
      assert.deepEqual(receivedHere.get(`${client} ${destination}`), wanted);
    }
  assert.equal(live.size, CLIENTS); // a path a client: one way out, one rule
  assert.deepEqual([live.uploadTotalBytes, live.downloadTotalBytes], [bytes, bytes]);
  for (const { association, socket } of clients) {
    association[Symbol.dispose]();
    socket.close();
  }
  for (const echo of echoes) echo.close();
  await over();
  assert.equal(live.size, 0);
});

test("what a client sends before its first datagram is decided arrives: as many as one read brings", async () => {
  const { serve, over } = core();
  await using inbound = await openTestInbound(
    socks,
    {},
    { accept: (session) => void (session.network === "udp" && serve(session)) },
  );
  const received: number[] = [];
  const origin = await boundDatagrams(
    sockets,
    HOST,
    (bytes) => received.push(bytes[0] as number),
    BURST_BYTES,
  );
  const association = await openSocksUdp(inbound.port, HOST);
  const client = await boundDatagrams(sockets, HOST, () => {}, BURST_BYTES);
  const head = Buffer.from([0, 0, 0, 1, 127, 0, 0, 1, origin.port >> 8, origin.port & 0xff]);
  const numbers = Array.from({ length: 200 }, (_, number) => number);
  for (const number of numbers) client.send(head, Buffer.alloc(1_200, number), HOST, association.port);
  await until("all are received", () => received.length >= numbers.length, { everyMs: 1 });
  assert.deepEqual(received, numbers);
  association[Symbol.dispose]();
  client.close();
  await over();
  origin.close();
});
