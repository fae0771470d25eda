/** Streams of AnyTLS sessions that relay threads go on with, and that come back when there is something else on the wire. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import fc from "fast-check";
import { openEngine } from "#engine/engine.ts";
import { nativeTls } from "#platform/tls.ts";
import type { Meter } from "#core/meter.ts";
import * as wire from "#protocols/anytls/wire.ts";
import type { Carrier } from "#relay/carrier.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import { anytls } from "#protocols/anytls/index.ts";
import { makeCertificate } from "../support/certificate.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";
import { openFrameClient, openSessions, type FrameClient } from "../support/anytls-sessions.ts";
import { openThreads } from "../support/carriers.ts";
import { echoed, outcome, readAll } from "../support/client.ts";
import { hashOf } from "../support/conversations.ts";
import { openListenerTls } from "../support/listener-tls.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { unlimited } from "../support/relayed.ts";

/** What a stream moves before it is worth a thread, and some. */
const BULK_BYTES = 400_000;

/** Counts what threads take and give back. */
class Returning implements Carrier {
  taken = 0;
  returned = 0;
  readonly afterBytes = 1;
  readonly #carrier: Carrier;

  constructor(carrier: Carrier) {
    this.#carrier = carrier;
  }

  carry({ goOn, ...pair }: Parameters<Carrier["carry"]>[0], ...rest: [never, never]): Promise<void> | null {
    const counted = { ...pair, goOn: (remote: Socket) => (this.returned++, goOn?.(remote)) };
    const carried = this.#carrier.carry(counted as never, ...rest);
    if (carried !== null) this.taken++;
    return carried;
  }
}

const native = nativeTls();
const engine = native === null ? null : await openThreads(1);
const tls = await openListenerTls(native);
const ways: { readonly name: string; carrier(): Returning | null }[] = [
  { name: "pump", carrier: () => null },
  ...(engine === null ? [] : [{ name: "handed over", carrier: () => new Returning(engine) }]),
];

/** A stream to an echo that has moved enough to be carried, if anybody carries. */
async function openBulk(client: FrameClient, id: number, port: number): Promise<Buffer> {
  const sent = randomBytes(BULK_BYTES);
  client.open(id, port);
  await client.expect(wire.SYNACK, id);
  client.send(wire.encodeData(id, sent));
  assert.ok((await client.untilGot(id, sent.length)).equals(sent));
  return sent;
}

async function pingPong(client: FrameClient): Promise<void> {
  client.send(wire.encodeFrame(wire.HEARTBEAT_REQUEST, 9));
  await client.expect(wire.HEARTBEAT_RESPONSE, 9);
}

/** Pieces of one size, each held for as long as is said of its number; fails where two are held at once. */
function holdingMeter(pieceBytes: number, holdMs: (pieces: number) => number) {
  const paid = { upload: 0, download: 0 };
  const held = { upload: 0, download: 0 };
  let pieces = 0;
  let cancelled = 0;
  const meter: Meter = {
    ...unlimited,
    free: false,
    pieceBytes,
    charge(direction, bytes) {
      assert.equal(held[direction], 0, "a piece is charged while another one is held");
      paid[direction] += bytes;
      const ms = holdMs(pieces++);
      if (ms > 0) held[direction] = bytes;
      return ms;
    },
    pass: (direction) => (held[direction] = 0),
    cancel(direction) {
      if (held[direction] > 0) cancelled++;
      paid[direction] -= held[direction];
      held[direction] = 0;
    },
    correct: (direction, bytes) => void (paid[direction] += bytes),
  };
  return { meter, paid, cancelled: () => cancelled };
}

for (const { name, carrier } of ways) {
  test(`${name}: a session outlives its streams, whichever side ends them`, async () => {
    let latest: Socket | null = null;
    await using origin = await openTcpOrigin((socket) => {
      latest = socket;
      echo(socket);
    });
    const way = carrier();
    await using server = await openSessions(tls, { carrier: way });
    const client = await openFrameClient(server.port);
    await openBulk(client, 1, origin.port);
    const ended = once(latest as unknown as Socket, "end");
    client.send(wire.encodeFrame(wire.FIN, 1));
    await ended;
    await openBulk(client, 2, origin.port);
    (latest as unknown as Socket).end("the last words");
    await client.expect(wire.FIN, 2);
    assert.equal(client.got(2).subarray(BULK_BYTES).toString(), "the last words");
    await openBulk(client, 3, origin.port);
    (latest as unknown as Socket).resetAndDestroy();
    await client.expect(wire.FIN, 3);
    await openBulk(client, 4, origin.port);
    const reset = outcome(latest as unknown as Socket);
    server.kill();
    await client.expect(wire.FIN, 4);
    assert.equal(await reset, "ECONNRESET");
    await server.untilSettled(4);
    assert.deepEqual(server.bytes, { upload: 4 * BULK_BYTES, download: 4 * BULK_BYTES + 14 });
    await pingPong(client);
    if (way !== null) assert.deepEqual([way.taken, way.returned], [4, 2]);
    client.socket.destroy();
  });

  test(`${name}: a second stream, a heartbeat, waste and data of nobody between torn data`, async () => {
    await using origin = await openTcpOrigin(echo);
    const way = carrier();
    await using server = await openSessions(tls, { carrier: way });
    const client = await openFrameClient(server.port);
    const first = await openBulk(client, 1, origin.port);
    await pingPong(client);
    const second = await openBulk(client, 2, origin.port);
    const more = randomBytes(50_000);
    client.send(wire.encodeData(1, more), wire.encodeFrame(wire.FIN, 2));
    await client.untilGot(1, first.length + more.length);
    const step = fc.oneof(
      fc.record({ what: fc.constant("data"), size: fc.integer({ min: 0, max: 200_000 }) }),
      fc.constantFrom(
        { what: "beat", size: 0 },
        { what: "waste", size: 300 },
        { what: "foreign", size: 70_000 },
      ),
    );
    let expected = Buffer.concat([first, more]);
    const property = fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 8 }),
      fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 90_000 })), {
        maxLength: 30,
      }),
      async (steps, cuts) => {
        const data = steps.map(({ what, size }) => randomBytes(what === "data" ? size : 0));
        const bytes = Buffer.concat(
          steps.map(({ what, size }, at) => {
            if (what === "data") return wire.encodeData(1, data[at] as Buffer);
            if (what === "beat") return wire.encodeFrame(wire.HEARTBEAT_REQUEST, 9);
            return what === "waste" ? wire.encodeWaste(size) : wire.encodeData(77, Buffer.alloc(size));
          }),
        );
        let at = 0;
        for (const [index, size] of cuts.entries()) {
          client.socket.write(bytes.subarray(at, (at += size)));
          if (index % 3 === 0) await delay(1);
        }
        client.socket.write(bytes.subarray(at));
        for (const { what } of steps) if (what === "beat") await client.expect(wire.HEARTBEAT_RESPONSE, 9);
        expected = Buffer.concat([expected, ...data]);
        assert.equal(hashOf(await client.untilGot(1, expected.length)), hashOf(expected));
      },
    );
    await fc.assert(property, { numRuns: 25 });
    assert.ok(client.got(2).equals(second));
    if (way !== null) assert.ok(way.returned > 5, `${way.returned} came back`);
    client.socket.destroy();
  });

  test(`${name}: who does not read is waited for, and whoever speaks meanwhile is heard`, async () => {
    const bytes = randomBytes(24 << 20);
    await using origin = await openTcpOrigin((socket) => {
      socket.once("data", () => socket.end(bytes));
      socket.resume();
    });
    const way = carrier();
    await using server = await openSessions(tls, { carrier: way });
    const client = await openFrameClient(server.port);
    client.open(1, origin.port);
    await client.expect(wire.SYNACK, 1);
    client.send(wire.encodeData(1, Buffer.from("go")));
    await client.untilGot(1, BULK_BYTES);
    client.socket.pause();
    await delay(50); // all stands still by now on most machines; the outcome must not depend on it
    client.send(wire.encodeFrame(wire.HEARTBEAT_REQUEST, 9));
    await delay(20);
    client.socket.resume();
    await client.expect(wire.HEARTBEAT_RESPONSE, 9);
    await client.expect(wire.FIN, 1);
    assert.equal(hashOf(client.got(1)), hashOf(bytes));
    if (way !== null) assert.ok(way.returned > 0, "it never came back");
    client.socket.destroy();
  });

  test(`${name}: an origin that does not read gets what was sent before its stream ended`, async () => {
    const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
    await using origin = await openTcpOrigin(resolve);
    await using server = await openSessions(tls, { carrier: carrier() });
    const client = await openFrameClient(server.port);
    client.open(1, origin.port);
    await client.expect(wire.SYNACK, 1);
    const remote = await accepted;
    const bytes = randomBytes(16 << 20);
    const echoed = readAll(remote.pause());
    remote.write(randomBytes(BULK_BYTES)); // what makes it worth a thread
    await client.untilGot(1, BULK_BYTES);
    client.send(wire.encodeData(1, bytes), wire.encodeFrame(wire.FIN, 1));
    await delay(50);
    remote.resume();
    assert.equal(hashOf(await echoed), hashOf(bytes));
    await pingPong(client);
    client.socket.destroy();
  });

  test(`${name}: an origin that ends and does not read may still read`, async () => {
    const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
    await using origin = await openTcpOrigin(resolve);
    await using server = await openSessions(tls, { carrier: carrier() });
    const client = await openFrameClient(server.port);
    client.open(1, origin.port);
    await client.expect(wire.SYNACK, 1);
    const remote = await accepted;
    remote.write(randomBytes(BULK_BYTES));
    await client.untilGot(1, BULK_BYTES);
    const bytes = randomBytes(16 << 20);
    client.send(wire.encodeData(1, bytes));
    await delay(50);
    remote.end("over");
    await client.expect(wire.FIN, 1);
    const got = await readAll(remote.resume());
    assert.ok(got.length > 0 && got.equals(bytes.subarray(0, got.length)));
    client.send(wire.encodeFrame(wire.FIN, 1));
    await pingPong(client);
    client.socket.destroy();
  });

  test(`${name}: a session that is cut off resets the origin`, async () => {
    let latest: Socket | null = null;
    await using origin = await openTcpOrigin((socket) => {
      latest = socket;
      echo(socket);
    });
    await using server = await openSessions(tls, { carrier: carrier() });
    for (const leave of ["end", "destroy"] as const) {
      const client = await openFrameClient(server.port);
      await openBulk(client, 1, origin.port);
      const reset = outcome(latest as unknown as Socket);
      client.socket[leave]();
      assert.equal(await reset, "ECONNRESET");
    }
    await server.untilSettled(2);
  });

  test(`${name}: a limit holds, and all is paid for`, async () => {
    const { meter, paid } = holdingMeter(20_000, (pieces) => (pieces % 8 === 0 ? 2 : 0));
    await using origin = await openTcpOrigin(echo);
    const way = carrier();
    await using server = await openSessions(tls, { carrier: way, meter });
    const client = await openFrameClient(server.port);
    for (const id of [1, 2]) await openBulk(client, id, origin.port);
    client.send(wire.encodeFrame(wire.FIN, 1), wire.encodeFrame(wire.FIN, 2));
    await server.untilSettled(2);
    assert.deepEqual(paid, { upload: 2 * BULK_BYTES, download: 2 * BULK_BYTES });
    assert.deepEqual(server.bytes, paid);
    if (way !== null) assert.ok(way.taken > 0, "nothing was carried");
    client.socket.destroy();
  });
}

test(
  "a piece that is held while its stream comes back is paid for once",
  { skip: engine === null },
  async () => {
    const bytes = randomBytes(1 << 20);
    await using origin = await openTcpOrigin((socket) => {
      socket.write(bytes);
      socket.resume();
    });
    const { meter, paid, cancelled } = holdingMeter(50_000, (pieces) => (pieces < 10 ? 0 : 30));
    const carrier = new Returning(engine as Carrier);
    await using server = await openSessions(tls, { carrier, meter });
    const client = await openFrameClient(server.port);
    client.open(1, origin.port);
    await client.expect(wire.SYNACK, 1);
    await client.untilGot(1, BULK_BYTES);
    while (cancelled() === 0) await pingPong(client);
    assert.ok((await client.untilGot(1, bytes.length)).equals(bytes));
    client.send(wire.encodeFrame(wire.FIN, 1));
    await server.untilSettled(1);
    assert.deepEqual(paid, { upload: 0, download: bytes.length });
    assert.deepEqual(server.bytes, paid);
    client.socket.destroy();
  },
);

test(
  "a user who is taken away loses streams that threads have, others keep theirs",
  {
    skip: engine === null,
  },
  async () => {
    const certificate = makeCertificate({ names: ["example.com"] });
    const carrier = new Returning(engine as Carrier);
    const options = {
      users: { ada: "letmein", bob: "other" },
      certificate: certificate.cert,
      "private-key": certificate.key,
    };
    await using server = await openServer(anytls, options, undefined, carrier);
    await using origin = await openTcpOrigin(echo);
    const open = (password: string) =>
      openClient(anytls, {
        password,
        server: "127.0.0.1",
        port: server.port,
        sni: "example.com",
        fingerprint: certificate.fingerprint,
      });
    await using ada = await open("letmein");
    await using bob = await open("other");
    const context = { signal: new AbortController().signal, metadata: null };
    const hers = await ada.connect(origin.destination, context);
    const his = await bob.connect(origin.destination, context);
    await Promise.all([hers, his].map((stream) => echoed(stream, BULK_BYTES)));
    assert.equal(carrier.taken, 2);
    const gone = outcome(hers);
    (server.inbound as ManagedInbound).replaceUsers([{ id: "bob", credential: "other", flow: null }]);
    await gone;
    await echoed(his, BULK_BYTES);
    his.destroy();
    await echoed(await bob.connect(origin.destination, context), BULK_BYTES);
    await outcome(await ada.connect(origin.destination, context));
    assert.equal(server.sessions.length, 3);
  },
);

test("a thread that dies takes the session along", { skip: native === null }, async () => {
  const workers: Worker[] = [];
  const note = (worker: Worker): void => void workers.push(worker);
  process.on("worker", note);
  await using own = await openEngine({ threads: 1, onDeath: () => {} });
  process.off("worker", note);
  await using origin = await openTcpOrigin(echo);
  const carrier = new Returning(own);
  await using server = await openSessions(tls, { carrier });
  const client = await openFrameClient(server.port);
  await openBulk(client, 1, origin.port);
  assert.equal(carrier.taken, 1);
  const closed = outcome(client.socket);
  void workers[0]?.terminate(); // noticed when it wakes up, within seconds
  await closed;
  await server.untilSettled(1);
  const next = await openFrameClient(server.port);
  await openBulk(next, 1, origin.port);
  next.socket.destroy();
});
