/** Streams of AnyTLS nodes that workers go on with, and that come back when there is something else on the wire. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import fc from "fast-check";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import * as wire from "#protocols/anytls/wire.ts";
import { arrived, type NodeSession, openAnytlsNode } from "../support/anytls-node.ts";
import { BULK_BYTES, pingPong } from "../support/anytls-sessions.ts";
import { openThreads } from "../support/carriers.ts";
import { outcome, readAll } from "../support/client.ts";
import { hashOf } from "../support/connections.ts";
import { nativeTls } from "../support/native-tls.ts";
import { holdingMeter, Returning } from "../support/returning.ts";
import { tlsLibrary } from "../support/tls.ts";
import { until } from "../support/until.ts";

const engine = nativeTls === null ? null : await openThreads(1);
const BROWSER = { "client-fingerprint": "chrome" };
const ways: readonly { readonly name: string; backend(): Returning | null; readonly keys?: object }[] = [
  { name: "pump", backend: () => null },
  ...(engine === null
    ? []
    : [
        { name: "handed over", backend: () => new Returning(engine) },
        { name: "by our own TLS, handed over", backend: () => new Returning(engine), keys: BROWSER },
      ]),
];

/** A download that is worth a thread; the client has it. */
async function fill(client: Socket, session: NodeSession, id: number): Promise<void> {
  const bytes = randomBytes(BULK_BYTES);
  session.send(wire.encodeData(id, bytes));
  assert.ok((await arrived(client, bytes.length)).equals(bytes));
}

for (const { name, backend, keys } of ways) {
  test(`${name}: a node's session outlives its streams, whichever side ends them`, async () => {
    const way = backend();
    const stop = new AbortController();
    await using node = await openAnytlsNode({ backend: way, signal: stop.signal }, keys);
    const first = await node.dial(1);
    const { session } = first;
    await fill(first.client, session, 1);
    session.send(wire.encodeData(1, Buffer.from("the last words")), wire.encodeFrame(wire.FIN, 1));
    assert.equal((await readAll(first.client)).toString(), "the last words");
    first.client.end();
    await node.relayed.untilSettled(1);
    const second = await node.dial(2, session);
    await fill(second.client, session, 2);
    second.client.end("over");
    await session.expect(wire.FIN, 2);
    assert.equal(session.got(2).subarray(-4).toString(), "over");
    await node.relayed.untilSettled(2);
    const third = await node.dial(3, session);
    await fill(third.client, session, 3);
    third.client.resetAndDestroy();
    await session.expect(wire.FIN, 3);
    const fourth = await node.dial(4, session);
    await fill(fourth.client, session, 4);
    const reset = outcome(fourth.client);
    stop.abort();
    await session.expect(wire.FIN, 4);
    assert.equal(await reset, "ECONNRESET");
    await node.relayed.untilSettled(4);
    await pingPong(session);
    assert.equal(node.sessions.length, 1);
    assert.deepEqual(node.relayed.bytes, { upload: 4, download: 4 * BULK_BYTES + 14 });
    if (way !== null) assert.deepEqual([way.taken, way.returned], [4, 2]);
  });

  test(`${name}: a node's first writes are padded, in both threads`, async () => {
    const way = backend();
    await using node = await openAnytlsNode({ backend: way }, keys);
    const { client, session } = await node.dial(1);
    await fill(client, session, 1);
    if (way !== null) assert.equal(way.taken, 1);
    const records = session.records;
    let before = records.length;
    let sent = 0;
    const say = async (): Promise<readonly number[]> => {
      client.write(Buffer.alloc(100));
      await session.untilGot(1, (sent += 100) + session.got(1).indexOf(0));
      return records.slice(before, (before = records.length));
    };
    assert.equal(records[0], 64);
    const inRange = (sizes: readonly number[], ...ranges: readonly [number, number][]) => {
      assert.equal(sizes.length, ranges.length, sizes.join());
      for (const [at, size] of sizes.entries()) {
        const [from, to] = ranges[at] as [number, number];
        assert.ok(size >= from && size < to, sizes.join());
      }
    };
    inRange(await say(), [400, 500]);
    inRange(await say(), [9, 10], [500, 1000]);
    inRange(await say(), [500, 1000]);
    await pingPong(session); // what answers is the main thread, which has the session by then
    inRange(records.slice(before, (before = records.length)), [500, 1000]);
    inRange(await say(), [500, 1000]);
    inRange(await say(), [500, 1000]);
    inRange(await say(), [107, 108]);
    client.destroy();
  });

  test(`${name}: heartbeats, waste and data of an unknown stream between torn data to a node`, async () => {
    const way = backend();
    await using node = await openAnytlsNode({ backend: way }, keys);
    const { client, session } = await node.dial(1);
    await fill(client, session, 1);
    const step = fc.oneof(
      fc.record({ what: fc.constant("data"), size: fc.integer({ min: 0, max: 200_000 }) }),
      fc.record({ what: fc.constant("said"), size: fc.integer({ min: 1, max: 200_000 }) }),
      fc.constantFrom(
        { what: "beat", size: 0 },
        { what: "waste", size: 300 },
        { what: "foreign", size: 70_000 },
      ),
    );
    let said = Buffer.alloc(0);
    const start = session.got(1).length;
    const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      const expected: Buffer[] = [];
      for (const { what, size } of steps) {
        const bytes = randomBytes(size);
        if (what === "said") {
          client.write(bytes);
          said = Buffer.concat([said, bytes]);
        } else if (what === "data") {
          expected.push(bytes);
          session.send(wire.encodeData(1, bytes));
        } else if (what === "beat") session.send(wire.encodeFrame(wire.HEARTBEAT_REQUEST, 9));
        else session.send(what === "waste" ? wire.encodeWaste(size) : wire.encodeData(77, bytes));
        if (size % 2 === 1) await delay(1);
      }
      const all = Buffer.concat(expected);
      assert.equal(hashOf(await arrived(client, all.length)), hashOf(all));
      for (const { what } of steps) if (what === "beat") await session.expect(wire.HEARTBEAT_RESPONSE, 9);
      const got = await session.untilGot(1, start + said.length);
      assert.equal(hashOf(got.subarray(start)), hashOf(said));
    });
    await fc.assert(property, { numRuns: 25 });
    if (way !== null) assert.ok(way.returned > 3, `${way.returned} came back`);
    client.destroy();
  });

  test(`${name}: a client of a node that does not read is waited for, and what it says is sent meanwhile`, async () => {
    const way = backend();
    await using node = await openAnytlsNode({ backend: way }, keys);
    const { client, session } = await node.dial(1);
    await fill(client, session, 1);
    const start = session.got(1).length;
    const [down, up] = [randomBytes(24 << 20), randomBytes(1 << 20)];
    session.send(wire.encodeData(1, down));
    client.write(up);
    const got = await session.untilGot(1, start + up.length);
    assert.equal(hashOf(got.subarray(start)), hashOf(up));
    session.send(wire.encodeFrame(wire.FIN, 1));
    assert.equal(hashOf(await readAll(client)), hashOf(down));
    client.end();
    await node.relayed.untilSettled(1);
    assert.deepEqual(node.relayed.bytes, { upload: up.length, download: BULK_BYTES + down.length });
  });

  test(`${name}: a server of a node that does not read is waited for, and gets what was sent before the end`, async () => {
    const way = backend();
    await using node = await openAnytlsNode({ backend: way }, keys);
    const { client, session } = await node.dial(1);
    await fill(client, session, 1);
    const start = session.got(1).length;
    session.socket.pause();
    const bytes = randomBytes(16 << 20);
    client.end(bytes);
    await delay(50); // all stands still by now on most machines; the outcome must not depend on it
    session.socket.resume();
    await session.expect(wire.FIN, 1);
    assert.equal(hashOf(session.got(1).subarray(start)), hashOf(bytes));
    await pingPong(session);
  });

  test(`${name}: a node's session that is cut off resets the client, and the next one is another`, async () => {
    await using node = await openAnytlsNode({ backend: backend() }, keys);
    for (const leave of ["end", "destroy"] as const) {
      const { client, session } = await node.dial(1);
      await fill(client, session, 1);
      const reset = outcome(client);
      session.socket[leave]();
      assert.equal(await reset, "ECONNRESET");
    }
    await node.relayed.untilSettled(2);
    assert.equal(node.sessions.length, 2);
  });

  test(`${name}: a limit holds on a node's stream, and all is paid for`, async () => {
    const { meter, paid } = holdingMeter(20_000, (pieces) => (pieces % 8 === 0 ? 2 : 0));
    const way = backend();
    await using node = await openAnytlsNode({ backend: way, meter }, keys);
    const { client, session } = await node.dial(1);
    await fill(client, session, 1);
    await fill(client, session, 1);
    client.write(randomBytes(100_000));
    session.send(wire.encodeFrame(wire.FIN, 1));
    client.end();
    await readAll(client);
    await node.relayed.untilSettled(1);
    assert.equal(paid.download, 2 * BULK_BYTES);
    assert.deepEqual(node.relayed.bytes, paid);
    if (way !== null) assert.ok(way.taken > 0, "nothing was carried");
  });
}

test(
  "a thread that dies takes the node's session along, and no other",
  { skip: nativeTls === null },
  async () => {
    const workers: Worker[] = [];
    const note = (worker: Worker): void => void workers.push(worker);
    process.on("worker", note);
    await using own = await openWorkerBackend({ tlsLibrary, threads: 1, onDeath: () => {} });
    process.off("worker", note);
    const backend = new Returning(own);
    await using node = await openAnytlsNode({ backend });
    const { client, session } = await node.dial(1);
    await fill(client, session, 1);
    await until("a worker has it", () => backend.taken === 1);
    const over = Promise.all([client, session.socket].map(outcome));
    void workers[0]?.terminate(); // noticed when it wakes up, within seconds
    await over;
    await node.relayed.untilSettled(1);
    const next = await node.dial(1);
    await fill(next.client, next.session, 1);
    next.client.destroy();
  },
);
