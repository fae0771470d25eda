/** UDP sockets by the runtime and in batches: the same promises. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { closeSync, openSync, readdirSync } from "node:fs";
import { test } from "node:test";
import type { Endpoint, Ip } from "#core/session.ts";
import { DatagramSockets, type DatagramSocket } from "#net/udp/datagram-socket.ts";
import { openBatchedDatagrams } from "#platform/datagrams.ts";
import { missing } from "../support/peer.ts";
import { until } from "../support/until.ts";
import { boundDatagrams } from "../support/bound-datagrams.ts";

const BATCHED = { name: "in batches", open: openBatchedDatagrams };
const ONE_BY_ONE = { name: "one at a time", open: () => null };
const skip = missing("prlimit");
const SOON = { everyMs: 2 };
const LOOPBACK = { 4: "127.0.0.1" as Ip, 6: "::1" as Ip };

for (const { name, open } of [BATCHED, ONE_BY_ONE]) {
  for (const family of [4, 6] as const)
    test(`${name}: IPv${family} datagrams of every length come whole, with their source`, async () => {
      const sockets = new DatagramSockets(open);
      const sent = new Map<string, number>();
      const received: { payload: Buffer; from: Endpoint }[] = [];
      const echo: DatagramSocket = await boundDatagrams(sockets, LOOPBACK[family], (payload, from) =>
        echo.send(payload.subarray(0, 1), payload.subarray(1), from.ip, from.port),
      );
      const client = await boundDatagrams(sockets, LOOPBACK[family], (payload, from) =>
        received.push({ payload: Buffer.from(payload), from }),
      );
      const to = { ip: LOOPBACK[family], port: echo.port };
      const lengths = [0, 1, 1200, 1472, 9000, 65_507, ...Array.from({ length: 194 }, (_, at) => at * 7)];
      for (const [at, length] of lengths.entries()) {
        const payload = randomBytes(length);
        const key = payload.toString("latin1");
        sent.set(key, (sent.get(key) ?? 0) + 1);
        client.send(null, payload, to.ip, to.port);
        if (at % 40 === 39) await until("they are received", () => received.length > at, SOON); // no receive buffer shall overflow
      }
      await until("all are received", () => received.length === lengths.length, SOON);
      for (const { payload, from } of received) {
        assert.deepEqual(from, to);
        const key = payload.toString("latin1");
        sent.set(key, (sent.get(key) ?? 0) - 1);
      }
      assert.deepEqual(
        [received.length, [...sent.values()].filter((left) => left !== 0)],
        [lengths.length, []],
      );
      client.close();
      echo.close();
      client.send(null, randomBytes(1), to.ip, to.port); // it has no receiver, and nothing breaks
    });

  test(`${name}: a datagram that cannot go costs the others nothing`, async () => {
    const sockets = new DatagramSockets(open);
    let received = 0;
    const receiver = await boundDatagrams(sockets, "127.0.0.1", () => received++);
    const sender = await boundDatagrams(sockets, "127.0.0.1", () => {});
    const closed = createSocket("udp4").bind(0, "127.0.0.1");
    await once(closed, "listening");
    const closedPort = closed.address().port;
    closed.close();
    await once(closed, "close");
    for (let round = 0; round < 20; round++) {
      sender.send(null, Buffer.from("x"), LOOPBACK[4], closedPort); // ICMP: port unreachable
      sender.send(null, Buffer.alloc(65_508), LOOPBACK[4], receiver.port); // EMSGSIZE
      sender.send(null, Buffer.alloc(70_000), LOOPBACK[4], receiver.port);
      sender.send(null, Buffer.from("x"), LOOPBACK[4], 0);
      sender.send(null, Buffer.from("x"), LOOPBACK[4], receiver.port);
      await until("the good one is received", () => received > round, SOON);
    }
    assert.equal(received, 20);
    sender.close();
    receiver.close();
  });

  test(`${name}: a dual-stack socket answers IPv4 clients`, async () => {
    const sockets = new DatagramSockets(open);
    const server: DatagramSocket = await boundDatagrams(sockets, "::", (payload, from) => {
      assert.equal(from.ip, "127.0.0.1");
      server.send(null, payload, from.ip, from.port);
    });
    const { promise, resolve } = Promise.withResolvers<Buffer>();
    const client = await boundDatagrams(sockets, "127.0.0.1", (payload) => resolve(Buffer.from(payload)));
    client.send(null, Buffer.from("hello"), LOOPBACK[4], server.port);
    assert.equal((await promise).toString(), "hello");
    client.close();
    server.close();
  });

  test(`${name}: a socket may be closed while it is read, and leaves no descriptor`, async () => {
    const descriptors = (): number => readdirSync("/proc/self/fd").length;
    const sockets = new DatagramSockets(open);
    const repository = await boundDatagrams(sockets, "127.0.0.1", () => {}); // what comes with the first socket stays
    const before = descriptors();
    for (let round = 0; round < 20; round++) {
      let received = 0;
      const receiver: DatagramSocket = await boundDatagrams(sockets, "127.0.0.1", () => {
        received++;
        receiver.close();
      });
      const sender = await boundDatagrams(sockets, "127.0.0.1", () => {});
      for (let at = 0; at < 10; at++) sender.send(null, Buffer.from("x"), LOOPBACK[4], receiver.port);
      await until("one is received", () => received > 0, SOON);
      sender.close();
      assert.equal(received, 1);
    }
    await until("the descriptors are closed", () => descriptors() <= before);
    assert.equal(descriptors(), before);
    repository.close();
  });
}

/** Until it is disposed of, this process can open nothing. */
function exhaustDescriptors(): Disposable {
  const limit = (soft: string): void =>
    void execFileSync("prlimit", [`--pid=${process.pid}`, `--nofile=${soft}:`]);
  const most = execFileSync("prlimit", [`--pid=${process.pid}`, "--nofile", "--noheadings", "--output=SOFT"]);
  const before = String(most).trim();
  limit("200");
  const opened: number[] = [];
  try {
    for (;;) opened.push(openSync("/dev/null", "r"));
  } catch {
    // That was the last one.
  }
  return {
    [Symbol.dispose]() {
      for (const fd of opened) closeSync(fd);
      limit(before);
    },
  };
}

test(
  "without a descriptor for batches a socket works one datagram at a time, and closes",
  { skip },
  async () => {
    const sockets = new DatagramSockets(openBatchedDatagrams);
    let received = 0;
    const receiver = await boundDatagrams(sockets, "127.0.0.1", () => received++);
    const socket = createSocket("udp4")
      .on("error", () => {})
      .bind(0, "127.0.0.1");
    await once(socket, "listening");
    let sender: DatagramSocket;
    {
      using _none = exhaustDescriptors();
      sender = sockets.take(socket, () => {});
    }
    sender.send(null, Buffer.from("x"), LOOPBACK[4], receiver.port);
    await until("it is received", () => received === 1, SOON);
    receiver.close();
    sender.close();
    await once(socket, "close");
  },
);
