/** Streams of AnyTLS sessions that workers go on with, and that come back when there is something else on the wire. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import * as wire from "#protocols/anytls/wire.ts";
import { BULK_BYTES, openBulk, openFrameClient, openSessions, pingPong } from "../support/anytls-sessions.ts";
import { openThreads } from "../support/carriers.ts";
import { outcome, readAll } from "../support/client.ts";
import { hashOf } from "../support/connections.ts";
import { openListenerTls } from "../support/listener-tls.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { holdingMeter, Returning } from "../support/returning.ts";
import { nativeTls as native } from "../support/native-tls.ts";

const engine = native === null ? null : await openThreads(1);
const tls = await openListenerTls(native);
const ways: { readonly name: string; backend(): Returning | null }[] = [
  { name: "pump", backend: () => null },
  ...(engine === null ? [] : [{ name: "handed over", backend: () => new Returning(engine) }]),
];

/** Stream 1 of a session, with the origin's end of it in the test's own hands. */
async function openOwn(backend: Returning | null) {
  await using undo = new AsyncDisposableStack();
  const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
  const origin = undo.use(await openTcpOrigin(resolve));
  const server = undo.use(await openSessions(tls, { backend }));
  const client = await openFrameClient(server.port);
  undo.defer(() => void client.socket.destroy());
  client.open(1, origin.port);
  await client.expect(wire.SYNACK, 1);
  const remote = await accepted;
  const owned = undo.move();
  return { client, remote, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

for (const { name, backend } of ways) {
  test(`${name}: a session outlives its streams, whichever side ends them`, async () => {
    let latest: Socket | null = null;
    await using origin = await openTcpOrigin((socket) => {
      latest = socket;
      echo(socket);
    });
    const way = backend();
    await using server = await openSessions(tls, { backend: way });
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

  test(`${name}: a second stream, a heartbeat, waste and data of an unknown stream between torn data`, async () => {
    await using origin = await openTcpOrigin(echo);
    const way = backend();
    await using server = await openSessions(tls, { backend: way });
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

  test(`${name}: a peer that does not read is waited for, and its own bytes are relayed meanwhile`, async () => {
    const bytes = randomBytes(24 << 20);
    await using origin = await openTcpOrigin((socket) => {
      socket.once("data", () => socket.end(bytes));
      socket.resume();
    });
    const way = backend();
    await using server = await openSessions(tls, { backend: way });
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
    await using stream = await openOwn(backend());
    const { client, remote } = stream;
    const bytes = randomBytes(16 << 20);
    const echoed = readAll(remote.pause());
    remote.write(randomBytes(BULK_BYTES)); // what makes it worth a thread
    await client.untilGot(1, BULK_BYTES);
    client.send(wire.encodeData(1, bytes), wire.encodeFrame(wire.FIN, 1));
    await delay(50);
    remote.resume();
    assert.equal(hashOf(await echoed), hashOf(bytes));
    await pingPong(client);
  });

  test(`${name}: an origin that ends and does not read may still read`, async () => {
    await using stream = await openOwn(backend());
    const { client, remote } = stream;
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
  });

  test(`${name}: a session that is cut off resets the origin`, async () => {
    let latest: Socket | null = null;
    await using origin = await openTcpOrigin((socket) => {
      latest = socket;
      echo(socket);
    });
    await using server = await openSessions(tls, { backend: backend() });
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
    const way = backend();
    await using server = await openSessions(tls, { backend: way, meter });
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
