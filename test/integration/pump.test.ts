import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Socket } from "node:net";
import { Duplex, duplexPair } from "node:stream";
import fc from "fast-check";
import type { Meter } from "#core/meter.ts";
import type { RelayBackend } from "#dataplane/backend.ts";
import { relay } from "#dataplane/event-loop/pump.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";
import { outcome, readAll } from "../support/client.ts";
import { watchLeaks } from "../support/leaks.ts";
import { echo, openTcpOrigin, source, untilHeldUp } from "../support/origin.ts";
import { relayPaths } from "../support/carriers.ts";
import { openRelayed, unlimited } from "../support/relayed.ts";
import { handSweep } from "../support/hand-sweep.ts";
import { openNarrowOrigin } from "../support/small-buffers.ts";
import { until } from "../support/until.ts";

const paths = await relayPaths();

/** More than the narrow origin is sent before it reads, and all of it is with the relay once it is written. */
const SAID_BYTES = 60_000;

/** What one side does: writes, waits, and then ends or resets. */
interface Script {
  readonly steps: readonly { readonly bytes: number; readonly pauseMs: number }[];
  readonly resets: boolean;
}

const script = (resets: fc.Arbitrary<boolean>): fc.Arbitrary<Script> =>
  fc.record({
    steps: fc.array(
      fc.record({
        bytes: fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 300_000 })),
        pauseMs: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 4 })),
      }),
      { maxLength: 8 },
    ),
    resets,
  });

/** Cuts and holds at random, but the same for the same seed. */
function capriciousMeter(pieceBytes: number, seed: number): Meter {
  let state = seed;
  const next = (): number => (state = (state * 1_103_515_245 + 12_345) & 0x7fffffff);
  return { ...unlimited, free: false, pieceBytes, reserve: () => (next() % 7 === 0 ? next() % 3 : 0) };
}

async function play(socket: Socket, { steps, resets }: Script): Promise<string> {
  const hash = createHash("sha256");
  for (const { bytes, pauseMs } of steps) {
    const block = randomBytes(bytes);
    hash.update(block);
    if (!socket.write(block)) await Promise.race([once(socket, "drain"), once(socket, "close")]);
    if (pauseMs > 0) await delay(pauseMs);
  }
  if (resets) socket.resetAndDestroy();
  else socket.end();
  return hash.digest("hex");
}

async function hashOf(socket: Socket): Promise<string> {
  const hash = createHash("sha256");
  socket.on("data", (chunk: Buffer) => hash.update(chunk));
  await once(socket, "end");
  return hash.digest("hex");
}

for (const { name: way, backend } of paths) {
  test(`${way}: whatever both sides write arrives whole, with pauses, cuts, holds and half-closes`, async () => {
    const noLeaks = watchLeaks();
    await fc.assert(
      fc.asyncProperty(
        script(fc.constant(false)),
        script(fc.constant(false)),
        fc.integer({ min: 500, max: 100_000 }),
        fc.integer(),
        async (fromClient, fromOrigin, pieceBytes, seed) => {
          const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
          await using origin = await openTcpOrigin(resolve);
          await using relayed = await openRelayed(origin.port, {
            backend,
            meter: backend === null ? capriciousMeter(pieceBytes, seed) : unlimited,
          });
          const client = await relayed.dial();
          const remote = await accepted;
          const arrived = [hashOf(remote), hashOf(client)];
          const sent = [play(client, fromClient), play(remote, fromOrigin)];
          assert.deepEqual(await Promise.all(arrived), await Promise.all(sent));
          const sizes = [fromClient, fromOrigin].map(({ steps }) =>
            steps.reduce((sum, { bytes }) => sum + bytes, 0),
          );
          await relayed.untilSettled();
          assert.deepEqual([relayed.bytes.upload, relayed.bytes.download], sizes);
        },
      ),
      { numRuns: 40 },
    );
    await noLeaks();
  });

  test(`${way}: a reset of either side becomes a reset of the other`, async () => {
    const noLeaks = watchLeaks();
    await fc.assert(
      fc.asyncProperty(script(fc.constant(true)), fc.boolean(), async (resetting, byClient) => {
        const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
        await using origin = await openTcpOrigin(resolve);
        await using relayed = await openRelayed(origin.port, { backend });
        const client = await relayed.dial();
        const remote = await accepted;
        const [actor, witness] = byClient ? [client, remote] : [remote, client];
        const ended = outcome(witness);
        actor.on("error", () => {}); // its own writes may fail once it has reset
        actor.resume();
        witness.resume();
        await play(actor, resetting);
        assert.equal(await ended, "ECONNRESET");
        await relayed.untilSettled();
      }),
      { numRuns: 25 },
    );
    await noLeaks();
  });

  test(`${way}: a reset behind an end costs nothing of what came before`, async () => {
    const sent = randomBytes(SAID_BYTES);
    const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
    await using origin = await openNarrowOrigin(resolve);
    await using relayed = await openRelayed(origin.port, { backend });
    const client = await relayed.dial();
    const remote = await accepted;
    client.end(sent);
    await once(client, "finish");
    if (backend === null) await until("all is read", () => relayed.bytes.upload === SAID_BYTES);
    client.resetAndDestroy();
    if (backend === null) {
      remote.write("to a client that is gone"); // the runtime notices the reset when it writes
      await relayed.untilSettled();
    }
    const arrived = readAll(remote);
    remote.resume();
    assert.ok(sent.equals(await arrived));
    remote.end();
    await relayed.untilSettled();
  });

  test(`${way}: 200 connections at a time`, async () => {
    await using origin = await openTcpOrigin(echo);
    await using relayed = await openRelayed(origin.port, { backend });
    const one = async (): Promise<void> => {
      const client = await relayed.dial();
      const sent = randomBytes(20_000);
      client.end(sent);
      assert.ok(sent.equals(await readAll(client)));
    };
    await Promise.all(Array.from({ length: 200 }, one));
    await relayed.untilSettled(200);
  });

  test(`${way}: a client that does not read holds up the origin, not the memory`, async () => {
    const size = 128 << 20; // the kernel may keep a third of it in its own buffers
    const { on, sent } = source(size);
    await using origin = await openTcpOrigin(on);
    await using relayed = await openRelayed(origin.port, { backend });
    const client = await relayed.dial();
    client.pause();
    await untilHeldUp(sent);
    // What the relay took and the kernel's buffers behind it have not: that much at most is in its memory.
    assert.ok(sent() < size / 2, `${sent()} bytes went out to a peer that does not read`);
    let received = 0;
    client.on("data", (chunk: Buffer) => (received += chunk.length));
    client.resume();
    await once(client, "end");
    assert.equal(received, size);
    client.end();
    await relayed.untilSettled();
  });

  test(`${way}: a kill ends both sides at once`, async () => {
    const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
    await using origin = await openTcpOrigin(resolve);
    const kill = new AbortController();
    await using relayed = await openRelayed(origin.port, { backend, signal: kill.signal });
    const client = await relayed.dial();
    const remote = await accepted;
    const outcomes = [outcome(client), outcome(remote)];
    client.resume();
    client.write("x");
    await once(remote, "data"); // the relay is at work
    kill.abort();
    assert.deepEqual(await Promise.all(outcomes), ["ECONNRESET", "ECONNRESET"]);
    await relayed.untilSettled();
  });

  test(`${way}: silence ends a connection; a half-closed one sooner`, async () => {
    for (const halfClosed of [false, true]) {
      const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
      await using origin = await openTcpOrigin(resolve);
      const { timers, advance } = handSweep();
      await using relayed = await openRelayed(origin.port, {
        backend,
        timers,
        idleMs: halfClosed ? Infinity : 100_000,
        halfClosedIdleMs: 10_000,
      });
      const client = await relayed.dial();
      const remote = await accepted;
      remote.resume();
      client.resume();
      if (halfClosed) {
        client.end();
        await once(remote, "end");
      } else {
        client.write("x");
        await once(remote, "data");
      }
      advance(9_000);
      assert.equal(relayed.settled, 0);
      const step = (): boolean => (advance(2_000), relayed.settled === 1);
      if (halfClosed) await until("it is over", step); // what a thread has done counts from when it is seen
      else {
        assert.equal(step(), false);
        advance(100_000);
        await relayed.untilSettled();
      }
      client.destroy();
    }
  });

  test(`${way}: what began while the event loop stood still is not judged by the time before`, async () => {
    const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
    await using origin = await openTcpOrigin(resolve);
    const { timers, advance, moveClock } = handSweep();
    const idler = { activeAtMs: 0, idleMs: Infinity, expire() {} };
    timers.add(idler); // so that there is a walk, with a clock of its own
    moveClock(68_000); // and none comes: the loop takes what a flood has left
    const idles = { idleMs: Infinity, halfClosedIdleMs: 60_000 };
    await using relayed = await openRelayed(origin.port, { backend, timers, ...idles });
    const client = await relayed.dial();
    const remote = await accepted;
    const lateBytes = new Promise((on) => client.once("data", on).once("close", () => on("nothing")));
    client.end();
    remote.resume();
    await once(remote, "end");
    advance(3_000);
    remote.on("error", () => {}).end("late");
    assert.equal(String(await lateBytes), "late");
    await relayed.untilSettled();
    timers.remove(idler);
    client.destroy();
  });

  test(`${way}: an end that comes after a long silence leaves the other side its time to answer`, async () => {
    const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
    await using origin = await openTcpOrigin(resolve);
    const { timers, advance } = handSweep();
    const idles = { idleMs: 100_000, halfClosedIdleMs: 10_000 };
    await using relayed = await openRelayed(origin.port, { backend, timers, ...idles });
    const client = await relayed.dial();
    const remote = await accepted;
    client.write("x");
    await once(remote, "data");
    advance(50_000);
    client.end();
    await once(remote, "end");
    advance(9_000);
    const cut = once(client, "end").then(() => "nothing");
    remote.write("late");
    assert.equal(String(await Promise.race([once(client, "data"), cut])), "late");
    await until("it is over", () => (advance(5_000), relayed.settled === 1));
    client.destroy();
  });
}

test("a stream that is already gone takes the other with it", async () => {
  const [client, clientPeer] = duplexPair();
  const [remote] = duplexPair();
  client.destroy();
  clientPeer.on("error", () => {});
  const options = {
    signal: new AbortController().signal,
    onBytes() {},
    timers: new IdleTimers(),
    idleMs: Infinity,
    halfClosedIdleMs: Infinity,
    backend: null,
  };
  await relay(client, remote, unlimited, options);
  assert.ok(remote.destroyed);
});

test("a stream that closes behind its end costs nothing of what came before", async () => {
  const sent = randomBytes(SAID_BYTES);
  const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
  await using origin = await openNarrowOrigin(resolve);
  const said = new Duplex({ allowHalfOpen: true, read() {}, write: (_data, _encoding, done) => done() });
  const front = async (socket: Socket): Promise<Duplex> => (socket.destroy(), said);
  let toOrigin: Socket | null = null;
  const back = (socket: Socket): Duplex => (toOrigin = socket);
  await using relayed = await openRelayed(origin.port, { front, back });
  await relayed.dial();
  const remote = await accepted;
  said.push(sent);
  said.push(null);
  await until("the kernel has all of it", () => toOrigin?.writableFinished === true);
  said.destroy();
  await once(said, "close");
  const arrived = readAll(remote);
  remote.resume();
  assert.ok(sent.equals(await arrived));
  remote.destroy();
  await relayed.untilSettled();
});

test("a held piece is not written after the end of the connection", async () => {
  const kill = new AbortController();
  const written: string[] = [];
  const client = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const remote = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk.toString());
      done();
    },
  });
  const done = relay(
    client,
    remote,
    { ...unlimited, pieceBytes: 2, reserve: () => 5 },
    {
      signal: kill.signal,
      onBytes() {},
      timers: new IdleTimers(),
      idleMs: Infinity,
      halfClosedIdleMs: Infinity,
      backend: null,
    },
  );
  client.push("abcdef");
  while (written.length < 2) await delay(1);
  kill.abort();
  await done;
  const seen = written.length;
  await delay(20);
  assert.equal(written.length, seen);
  assert.equal("abcdef".startsWith(written.join("")), true);
});

test("a carrier may take plain sockets, or leave them to the pump", async () => {
  await using origin = await openTcpOrigin(echo);
  let asked = 0;
  const refusing: RelayBackend = { afterBytes: 0, relay: () => (asked++, null) };
  await using relayed = await openRelayed(origin.port, { backend: refusing });
  const client = await relayed.dial();
  client.end("hello");
  assert.equal((await readAll(client)).toString(), "hello");
  assert.equal(asked, 1);
  const taking: RelayBackend = {
    afterBytes: 0,
    async relay({ client: { stream: near }, remote: { stream: remote } }) {
      near.pipe(remote).pipe(near);
      await Promise.all([once(near, "close"), once(remote, "close")]);
    },
  };
  await using carried = await openRelayed(origin.port, { backend: taking });
  const other = await carried.dial();
  other.end("carried");
  assert.equal((await readAll(other)).toString(), "carried");
  assert.deepEqual(carried.bytes, { upload: 0, download: 0 });
});
