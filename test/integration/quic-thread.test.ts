/** Listeners of QUIC in a thread: what is relayed there, counted, limited and ended, and what the thread's end leaves. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createSocket } from "node:dgram";
import type { Duplex } from "node:stream";
import { after, describe, test } from "node:test";
import type { Session } from "#core/session.ts";
import type { Meter } from "#core/meter.ts";
import { LOOPBACK_V4, toDestination } from "#net/address/ip.ts";
import { dialTcp } from "#net/dial/dial.ts";
import { relay } from "#dataplane/event-loop/pump.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";
import { CountingCarrier } from "../support/carriers.ts";
import { outcome, readAll } from "../support/client.ts";
import { openListener, openNode } from "../support/hysteria2-listener.ts";
import { countThenAnswer, echo, openTcpOrigin } from "../support/origin.ts";
import { openQuicEngine } from "../support/quic-engine.ts";
import { unlimited } from "../support/relayed.ts";
import { holdingMeter } from "../support/returning.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const TO = toDestination("origin.test", 80);
const context = () => ({ signal: AbortSignal.timeout(30_000), metadata: null });
const engine = SKIP === false ? await openQuicEngine() : null;
after(() => engine?.[Symbol.asyncDispose]());

/** Relays every connection to the origin as the data plane does, with the thread's workers. */
function relaying(originPort: number, meter: Meter = unlimited) {
  const carrier = engine === null ? null : new CountingCarrier(engine.engine, 64 * 1024);
  const bytes = { upload: 0, download: 0 };
  const stop = new AbortController();
  const timers = new IdleTimers();
  let settled = 0;
  const serve = async (session: Session): Promise<void> => {
    assert.equal(session.network, "tcp");
    if (session.network !== "tcp") return;
    const to = { ip: LOOPBACK_V4, port: originPort };
    const remote = await dialTcp(to, { signal: stop.signal, timeoutMs: 5_000, sockets: null });
    session.reply(null);
    await relay(session.stream, remote, meter, {
      signal: stop.signal,
      onBytes: (direction, count) => void (bytes[direction] += count),
      timers,
      idleMs: Infinity,
      halfClosedIdleMs: Infinity,
      backend: carrier,
    });
    settled++;
  };
  const accept = (session: Session): void => void serve(session);
  return { accept, bytes, stop, taken: () => carrier?.taken ?? 0, settled: () => settled };
}

async function sendAll(stream: Duplex, bytes: Buffer): Promise<Buffer> {
  const reading = readAll(stream);
  stream.end(bytes);
  return reading;
}

describe("streams of a listener in a thread", { skip: SKIP }, () => {
  test("go by the thread from the first byte on, both ways and with their ends, counted to the byte", async () => {
    await using origin = await openTcpOrigin(echo);
    const way = relaying(origin.port);
    await using listener = await openListener(way.accept, {}, undefined, engine?.memory);
    await using node = await openNode(listener.port);
    const sizes = [0, 1, 70_000, 3_000_000];
    const sent = sizes.map((size) => randomBytes(size));
    const back = await Promise.all(
      sent.map(async (bytes) => sendAll(await node.connect(TO, context()), bytes)),
    );
    for (const [index, bytes] of back.entries()) assert.ok(bytes.equals(sent[index] ?? assert.fail()));
    await until("the ends", () => way.settled() === sizes.length);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    assert.deepEqual(way.bytes, { upload: total, download: total });
    assert.equal(way.taken(), sizes.length);
  });

  test("an upload whose origin answers behind its end", async () => {
    await using origin = await openTcpOrigin(countThenAnswer);
    const way = relaying(origin.port);
    await using listener = await openListener(way.accept, {}, undefined, engine?.memory);
    await using node = await openNode(listener.port);
    const stream = await node.connect(TO, context());
    assert.equal(String(await sendAll(stream, Buffer.alloc(2_500_000))), "2500000");
    await until("the end", () => way.settled() === 1);
    assert.deepEqual(way.bytes, { upload: 2_500_000, download: 7 });
  });

  test("each piece waits for leave while a limit applies", async () => {
    await using origin = await openTcpOrigin(echo);
    const { meter, paid } = holdingMeter(50_000, (pieces) => (pieces % 3 === 0 ? 5 : 0));
    const way = relaying(origin.port, meter);
    await using listener = await openListener(way.accept, {}, undefined, engine?.memory);
    await using node = await openNode(listener.port);
    const bytes = randomBytes(600_000);
    const stream = await node.connect(TO, context());
    await until("a relay that has nothing to wait for", () => way.taken() === 1);
    const back = await sendAll(stream, bytes);
    assert.ok(back.equals(bytes));
    await until("the end", () => way.settled() === 1);
    assert.deepEqual([way.bytes, paid], [paid, { upload: 600_000, download: 600_000 }]);
    assert.equal(way.taken(), 1);
  });

  test("a reset of the origin, of the client, and of ours are faults of the other side", async () => {
    let latest: Duplex | null = null;
    await using origin = await openTcpOrigin((socket) => (latest = socket));
    const way = relaying(origin.port);
    await using listener = await openListener(way.accept, {}, undefined, engine?.memory);
    await using node = await openNode(listener.port);
    const open = async () => {
      latest = null;
      const stream = await node.connect(TO, context());
      stream.write("x");
      await until("the origin", () => latest !== null && latest.readableLength > 0);
      const socket: Duplex = latest ?? assert.fail();
      stream.resume();
      return { stream, socket };
    };
    const first = await open();
    const told = outcome(first.stream);
    assert.ok("resetAndDestroy" in first.socket && typeof first.socket.resetAndDestroy === "function");
    first.socket.resetAndDestroy();
    assert.match(String(await told), /reset/);
    const second = await open();
    const reset = outcome(second.socket.resume());
    second.stream.on("error", () => {}).destroy(new Error("the client is done"));
    assert.equal(await reset, "ECONNRESET");
    const third = await open();
    const both = Promise.all([outcome(third.stream), outcome(third.socket.resume())]);
    way.stop.abort(new Error("the user is gone"));
    const [near, far] = await both;
    assert.match(String(near), /reset/);
    assert.equal(far, "ECONNRESET");
    await until("all ends", () => way.settled() === 3);
    assert.equal(way.taken(), 3);
  });

  test("a slow reader holds its sender up, and nothing is lost", async () => {
    await using origin = await openTcpOrigin((socket) => void socket.end(Buffer.alloc(30_000_000, 7)));
    const way = relaying(origin.port);
    await using listener = await openListener(way.accept, {}, undefined, engine?.memory);
    await using node = await openNode(listener.port);
    const stream = await node.connect(TO, context());
    stream.write("x");
    await until("what has room", () => way.bytes.download > 0 || stream.readableLength > 0);
    const bytes = await sendAll(stream, Buffer.alloc(0));
    assert.equal(bytes.length, 30_000_000);
    await until("the end", () => way.settled() === 1);
    assert.deepEqual(way.bytes, { upload: 1, download: 30_000_000 });
  });

  test("behind the close of a listener its port is free, and its clients were told", async () => {
    const way = relaying(0);
    const listener = await openListener(way.accept, {}, undefined, engine?.memory);
    await using node = await openNode(listener.port);
    await using udp = await node.associate(TO, context());
    udp.receive(() => {});
    await listener[Symbol.asyncDispose]();
    const socket = createSocket("udp4");
    socket.bind(listener.port, "127.0.0.1");
    await once(socket, "listening");
    socket.close();
  });
});

describe("the end of the thread", { skip: SKIP }, () => {
  test("costs its connections, and the listener goes on", async () => {
    await using own = await openQuicEngine();
    await using listener = await openListener(
      (session) => {
        if (session.network !== "tcp") return;
        session.reply(null);
        session.stream.pipe(session.stream);
      },
      {},
      undefined,
      own.memory,
    );
    await using node = await openNode(listener.port);
    const stream = await node.connect(TO, context());
    stream.write("x");
    await once(stream, "data");
    const over = outcome(stream);
    own.threads[0]?.outbox.put("no message" as never); // no message: what the thread throws at it is caught nowhere
    await until("the thread is gone", () => own.died !== null);
    await over;
    await using other = await openNode(listener.port);
    const again = await other.connect(TO, context());
    again.on("error", () => {}).write("y");
    const [bytes] = await once(again, "data");
    assert.equal(String(bytes), "y");
  });
});
