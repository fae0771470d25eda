/** A listener whose clients are nearly all taken from the workers is accepted by the event loop for a while. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { mock, test } from "node:test";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import type { AcceptedConnection, WorkerConnection } from "#core/accepted.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import type { AcceptOffload, OffloadOptions } from "#net/listen/accept-offload.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import { TcpListener } from "#net/listen/tcp-listener.ts";
import { byWorkers } from "../support/accepted.ts";
import { readAll } from "../support/client.ts";
import { tlsLibrary } from "../support/tls.ts";

const skip = process.platform === "linux" ? false : "SKIP worth of workers: needs Linux";

const AT_A_TIME = 16;
/** What is looked at before anything changes. */
const SAMPLE = 512;
const REST_MS = 10_000;

interface Visited extends AsyncDisposable {
  /** What served each of so many clients, all at once. */
  visit(): Promise<readonly string[]>;
}

/** `on` gets the connections of workers; those of the event loop get an error. */
async function openListener(on: (client: WorkerConnection) => void): Promise<Visited> {
  await using opened = new AsyncDisposableStack();
  const onDeath = (why: string): never => assert.fail(`a worker died: ${why}`);
  const engine = opened.use(await openWorkerBackend({ tlsLibrary, threads: 2, onDeath }));
  const pool = new SocketPool();
  const where = { ip: LOOPBACK_V4, port: 0, owner: "test" };
  const lease = opened.use(
    await pool.leaseTcp(
      where,
      byWorkers(on, (stream) => void stream.end("loop")),
    ),
  );
  pool.useThreads(engine.accepting);
  lease.activate();
  const { port } = lease.endpoint;
  const one = async (): Promise<string> => (await readAll(connect(port, "127.0.0.1"))).toString();
  const owned = opened.move();
  return {
    visit: () => Promise.all(Array.from({ length: AT_A_TIME }, one)),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

test(
  "clients that are all taken come by the event loop, until the threads have rested",
  { skip },
  async () => {
    mock.timers.enable({ apis: ["setTimeout"] });
    using _ = { [Symbol.dispose]: () => mock.timers.reset() };
    await using listener = await openListener((client) => void client.stream().end("thread"));
    const all: string[] = [];
    while (all.at(-1) !== "loop" && all.length < 2 * SAMPLE) all.push(...(await listener.visit()));
    const byThreads = all.filter((who) => who === "thread").length;
    assert.ok(byThreads >= SAMPLE && byThreads < SAMPLE + 2 * AT_A_TIME, `${byThreads} of ${all.length}`);
    assert.deepEqual(new Set(await listener.visit()), new Set(["loop"]));
    mock.timers.tick(REST_MS);
    assert.deepEqual(new Set(await listener.visit()), new Set(["thread"]));
  },
);

test("where a quarter is for the threads, these go on", { skip }, async () => {
  await using owned = new AsyncDisposableStack();
  const origin = createServer((socket) => socket.on("error", () => {}).end("dialled")).listen(0, "127.0.0.1");
  owned.defer(() => void origin.close());
  await once(origin, "listening");
  const way: DialPlan = {
    ip: LOOPBACK_V4,
    port: (origin.address() as AddressInfo).port,
    routingMark: 0,
    interfaceName: "",
    probes: null,
    timeoutMs: 10_000,
    isFirstOfMany: false,
  };
  let count = 0;
  const listener = owned.use(
    await openListener((client) => {
      if (count++ % 4 === 0) client.dial(way, Buffer.alloc(0), false);
      else client.stream().end("thread");
    }),
  );
  const all: string[] = [];
  while (all.length < 2 * SAMPLE) all.push(...(await listener.visit()));
  assert.deepEqual(new Set(all), new Set(["dialled", "thread"]));
});

test("those that workers decide count for them where all others are taken from them", async () => {
  const told: OffloadOptions[] = [];
  const workers: AcceptOffload = {
    duplicate: () => 1 << 20, // no such descriptor: nothing here uses it
    close() {},
    listen(_, options) {
      told.push(options);
      return { stop: () => assert.fail("it was given up") };
    },
  };
  const listener = new TcpListener(new Set(), () => workers);
  await listener.open({ ip: LOOPBACK_V4, port: 0, owner: "test" }, false);
  listener.holders.push({ on: byWorkers(() => {}), active: true });
  listener.deliver();
  const [options] = told as [OffloadOptions];
  const client = { follow() {} } as unknown as AcceptedConnection;
  for (let count = 0; count < 4 * SAMPLE; count++) {
    options.onAccepted(client);
    options.onTaken?.();
    options.onDecided?.();
  }
  assert.equal(told.length, 1);
  await listener.close();
});
