/** What only the engine can do wrong: threads that die, bytes read too early, counts of what is under way. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import type { Socket } from "node:net";
import type { MeterObserver } from "#core/meter.ts";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import { BackendChoice } from "#dataplane/backend-choice.ts";
import { outcome, readAll } from "../support/client.ts";
import { governed, policy, settings } from "../support/governed-ledger.ts";
import { watchLeaks } from "../support/leaks.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openRelayed, unlimited } from "../support/relayed.ts";
import { tlsLibrary } from "../support/tls.ts";

const skip = process.platform === "linux" ? false : "SKIP relay engine: needs Linux";

test("a thread that dies takes its own connections with it, and the pump takes over", { skip }, async () => {
  const noLeaks = watchLeaks();
  {
    const deaths: number[] = [];
    const workers: Worker[] = [];
    const onWorker = (worker: Worker): void => void workers.push(worker);
    process.on("worker", onWorker);
    await using engine = await openWorkerBackend({
      tlsLibrary,
      threads: 1,
      afterBytes: 0,
      onDeath: (_, left) => void deaths.push(left),
    });
    process.off("worker", onWorker);
    await using origin = await openTcpOrigin(echo);
    await using relayed = await openRelayed(origin.port, { backend: engine });
    const client = await relayed.dial();
    client.write("x");
    await once(client, "data");
    while (relayed.bytes.download === 0) {
      engine.look(); // it counts behind the call that sends
      await delay(5);
    }
    const ended = outcome(client);
    void workers[0]?.terminate(); // noticed when it wakes up, within seconds
    assert.equal(await ended, "ECONNRESET");
    assert.deepEqual(deaths, [0]);
    assert.equal(relayed.settled, 1);
    assert.deepEqual(relayed.bytes, { upload: 1, download: 1 });
    const other = await relayed.dial();
    other.end("by the pump");
    assert.equal((await readAll(other)).toString(), "by the pump");
  }
  await noLeaks();
});

test("the log says once which way is taken, and why", { skip }, async () => {
  const lines: string[] = [];
  const at = (text: string | (() => string)): void =>
    void lines.push(typeof text === "string" ? text : text());
  await using path = new BackendChoice({ debug: at, info: at, warning: at, error: at }, { tlsLibrary });
  assert.equal(await path.choose({ relay: "portable", workers: null }), null);
  const backend = await path.choose({ relay: "auto", workers: 1 });
  assert.notEqual(backend, null);
  assert.equal(await path.choose({ relay: "auto", workers: null }), backend);
  assert.equal(lines.length, 2);
  assert.match(lines[0] ?? "", /^relay: the event loop alone \(relay: portable\)$/);
  assert.match(lines[1] ?? "", /^relay: 1 worker thread \(workers: 1\)/);
  assert.equal(await path.choose({ relay: "auto", workers: 2 }), backend);
  assert.equal(lines[2], "workers: 2 is for the next start, 1 were started");
});

test("what both sides said before the dial was done goes first, in order", { skip }, async () => {
  await using engine = await openWorkerBackend({
    tlsLibrary,
    threads: 1,
    afterBytes: 0,
    onDeath: () => {},
  });
  const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
  await using origin = await openTcpOrigin((socket) => {
    socket.write("banner ");
    resolve(socket);
  });
  await using relayed = await openRelayed(origin.port, { backend: engine });
  const client = await relayed.dial();
  client.write("early ");
  const remote = await accepted;
  await delay(20); // both may have been read by the runtime; the outcome must not depend on it
  client.end("late");
  remote.end("and more");
  const [up, down] = await Promise.all([readAll(remote), readAll(client)]);
  assert.deepEqual([up.toString(), down.toString()], ["early late", "banner and more"]);
  await relayed.untilSettled();
  assert.deepEqual(relayed.bytes, { upload: 10, download: 15 });
});

test(
  "a meter that turns limited and free again holds back what it was charged for, and is charged for all",
  { skip },
  async () => {
    await using engine = await openWorkerBackend({
      tlsLibrary,
      threads: 1,
      afterBytes: 0,
      onDeath: () => {},
    });
    const charged = { upload: 0, download: 0 };
    let asked = 0;
    let observer: MeterObserver | null = null;
    const meter = {
      ...unlimited,
      free: true,
      pieceBytes: 10_000,
      observe: (next: MeterObserver | null) => void (observer = next),
      reserve(direction: "upload" | "download", bytes: number) {
        charged[direction] += bytes;
        if (!meter.free) asked++;
        return 0;
      },
      adjust(direction: "upload" | "download", bytes: number) {
        charged[direction] += bytes;
      },
    };
    const set = (free: boolean): void => {
      meter.free = free;
      observer?.onMeterChange();
    };
    await using origin = await openTcpOrigin(echo);
    await using relayed = await openRelayed(origin.port, { backend: engine, meter });
    const client = await relayed.dial();
    const exchange = async (bytes: number): Promise<void> => {
      let missing = bytes;
      client.write(Buffer.alloc(bytes));
      while (missing > 0) missing -= ((await once(client, "data")) as [Buffer])[0].length;
    };
    await exchange(100_000);
    assert.equal(asked, 0);
    set(false);
    // The worker learns of it a moment later; what moves until then is charged with the first piece.
    let exchanges = 2;
    for (; asked < 40; exchanges++) await exchange(100_000); // ten pieces of 10,000 bytes each way
    set(true);
    await exchange(100_000);
    client.end();
    await relayed.untilSettled();
    assert.deepEqual(charged, { upload: exchanges * 100_000, download: exchanges * 100_000 });
    assert.deepEqual(relayed.bytes, charged);
  },
);

test(
  "what moved before a limit came is counted to the last byte, though the limit would have held it for hours",
  { skip },
  async () => {
    const core = governed();
    await core.apply(settings({ global: policy({ id: "all" }) }));
    const meter = core.session();
    await using engine = await openWorkerBackend({
      tlsLibrary,
      threads: 1,
      afterBytes: 0,
      onDeath: () => {},
    });
    await using origin = await openTcpOrigin(echo);
    await using relayed = await openRelayed(origin.port, { backend: engine, meter });
    const client = await relayed.dial();
    client.write(Buffer.alloc(300_000));
    for (let missing = 300_000; missing > 0;) missing -= ((await once(client, "data")) as [Buffer])[0].length;
    const limit = policy({ id: "all", uploadBps: 8000, downloadBps: 8000 });
    await core.apply(settings({ global: limit }));
    await delay(5); // the flow learns of it behind this turn; the outcome must not depend on it
    client.end();
    await relayed.untilSettled();
    meter[Symbol.dispose]();
    const { counters } = core.governance.status().policies[0] ?? assert.fail();
    assert.deepEqual([counters.upload, counters.download], [300_000, 300_000]);
    await core.apply(null);
  },
);

test("many threads are no reason for a warning about listeners", { skip }, async () => {
  const before = process.listenerCount("exit");
  await using engine = await openWorkerBackend({ tlsLibrary, threads: 4, onDeath: () => {} });
  assert.equal(engine.threads, 4);
  assert.ok(process.listenerCount("exit") <= before + 1);
});
