/** UDP sockets that listen: as inbounds see them, and handed from one generation to the next. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import type { Endpoint, Ip } from "#core/session.ts";
import type { DatagramListener } from "#core/sockets.ts";
import { openDatagrams } from "#net/udp/datagram-listener.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import type { Lease } from "#net/listen/lease.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import { openBatchedDatagrams } from "#platform/datagrams.ts";
import { datagramReplyAtLast } from "../support/client.ts";
import { until } from "../support/until.ts";

const WAYS = { batches: openBatchedDatagrams, "one at a time": () => null } as const;

const ask = async (port: number, question: string): Promise<string> =>
  (await datagramReplyAtLast(port, question)).toString();

const answering =
  (name: string) =>
  (socket: DatagramListener): void =>
    socket.receive((question, from) => socket.send(Buffer.from(`${name}:${question}`), from));

for (const [way, open] of Object.entries(WAYS)) {
  const openAt = (ip: string) =>
    openDatagrams(
      { at: { ip: ip as Ip, port: 0 }, reusePort: false, configure() {} },
      new DatagramSockets(open),
    );

  test(`${way}: a listener of both families knows an IPv4 client by its IPv4 address`, async () => {
    const { socket, close } = await openAt("::");
    const sources: Endpoint[] = [];
    socket.receive((question, from) => {
      sources.push(from);
      socket.send(question, from);
    });
    assert.equal(await ask(socket.local.port, "who"), "who");
    assert.equal(sources[0]?.ip, "127.0.0.1");
    close();
    await socket.closed;
  });

  test(`${way}: a client that has gone costs the others nothing`, async () => {
    const { socket, close } = await openAt("127.0.0.1");
    const gone = createSocket("udp4").bind(0, "127.0.0.1");
    await once(gone, "listening");
    const to = { ip: LOOPBACK_V4, port: gone.address().port };
    gone.close();
    await once(gone, "close");
    answering("a")(socket);
    for (let count = 0; count < 5; count++) socket.send(Buffer.from("anybody?"), to);
    assert.equal(await ask(socket.local.port, "1"), "a:1");
    close();
  });

  test(`${way}: a socket that cannot be what was asked for is closed`, async () => {
    const taken = await openAt("127.0.0.1");
    const sockets = new DatagramSockets(open);
    const { local: at } = taken.socket;
    await assert.rejects(openDatagrams({ at, reusePort: false, configure() {} }, sockets), {
      code: "EADDRINUSE",
    });
    taken.close();
    const refuse = (): never => {
      throw new Error("no such mark");
    };
    await assert.rejects(openDatagrams({ at, reusePort: false, configure: refuse }, sockets), /no such mark/);
    const again = await openDatagrams({ at, reusePort: false, configure() {} }, sockets);
    again.close();
  });
}

test("what comes before a listener is active waits for it", async (t) => {
  const pool = new SocketPool();
  const client = createSocket("udp4");
  t.after(() => client.close());
  const answers: string[] = [];
  client.on("message", (answer) => answers.push(answer.toString()));
  const lease = await pool.leaseUdp({ ip: LOOPBACK_V4, port: 0, owner: "late" }, answering("late"));
  t.after(() => giveUp(lease));
  const { port } = lease.endpoint;
  for (const question of ["1", "2", "3"]) client.send(question, port, "127.0.0.1");
  await setTimeout(50); // the event loop turns: a socket that is read now would lose them
  assert.deepEqual(answers, []);
  lease.activate();
  await until("three answers", () => answers.length === 3);
  assert.deepEqual(answers, ["late:1", "late:2", "late:3"]);
});

test("a UDP port goes to the lease activated last, back again, and is free without leases", async () => {
  const pool = new SocketPool();
  const socket = createSocket("udp4").bind(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  socket.close();
  await once(socket, "close");
  const at = { ip: LOOPBACK_V4, port, owner: "" };
  const before = await pool.leaseUdp(at, answering("before"));
  before.activate();
  assert.equal(await ask(port, "1"), "before:1");
  const next = await pool.leaseUdp(at, answering("next"));
  assert.equal(await ask(port, "2"), "before:2");
  next.activate();
  assert.equal(await ask(port, "3"), "next:3");
  await giveUp(next);
  assert.equal(await ask(port, "4"), "before:4");
  await giveUp(before);
  const other = createSocket("udp4").bind(port, "127.0.0.1");
  await once(other, "listening");
  other.close();
});

const giveUp = async (lease: Lease): Promise<void> => lease[Symbol.asyncDispose]();
