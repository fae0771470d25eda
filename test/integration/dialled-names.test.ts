/** What workers dial is known by its name from before anything can come back, and no longer than it is open. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { test } from "node:test";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import type { WorkerConnection } from "#core/accepted.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import type { Endpoint } from "#core/session.ts";
import { LOOPBACK_V4, socketIp } from "#net/address/ip.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import { DialledNames } from "#dataplane/dialled-names.ts";
import { byWorkers } from "../support/accepted.ts";
import { freePorts } from "../support/free-ports.ts";
import { session } from "../support/routing.ts";
import { until } from "../support/until.ts";
import { tlsLibrary } from "../support/tls.ts";

const skip = process.platform === "linux" ? false : "SKIP dialled names: workers need Linux";

const COUNT = 200;

const wayTo = (port: number): DialPlan => ({
  ip: LOOPBACK_V4,
  port,
  routingMark: 0,
  interfaceName: "",
  probes: null,
  timeoutMs: 10_000,
  isFirstOfMany: false,
});

/** A listener of workers, active until the end of the test; `on` gets its clients. */
async function openFront(
  on: (client: WorkerConnection) => void,
  owned: AsyncDisposableStack,
): Promise<number> {
  const onDeath = (why: string): never => assert.fail(`a worker died: ${why}`);
  const engine = owned.use(await openWorkerBackend({ tlsLibrary, threads: 2, onDeath }));
  const pool = new SocketPool();
  const where = { ip: LOOPBACK_V4, port: 0, owner: "test" };
  const asStream = (): never => assert.fail("a client of the event loop");
  const lease = owned.use(await pool.leaseTcp(where, byWorkers(on, asStream)));
  pool.useThreads(engine.accepting);
  lease.activate();
  return lease.endpoint.port;
}

test(
  "a dial is known to the listener that it reaches, and forgotten once it is closed",
  { skip },
  async () => {
    await using owned = new AsyncDisposableStack();
    const names = new DialledNames();
    const seen: { readonly end: Endpoint; readonly isKnown: boolean }[] = [];
    const origin = createServer((socket) => {
      const end = { ip: socketIp(socket.remoteAddress), port: socket.remotePort ?? 0 };
      seen.push({ end, isKnown: names.find(end, to) !== null });
      socket.on("error", () => {}).resume();
      socket.on("end", () => socket.end());
    }).listen(0, "127.0.0.1");
    owned.defer(() => void origin.close());
    await once(origin, "listening");
    const to = wayTo((origin.address() as AddressInfo).port);
    let ended = 0;
    const port = await openFront((client) => {
      const noted = names.add(client, to, { metadata: session(to.ip), isDirect: true });
      const onEnded = (): void => {
        ended++;
        assert.equal(client.dialledFrom(), null);
        noted[Symbol.dispose]();
      };
      client.events = { dialled() {}, failed: (error) => assert.fail(error ?? "not opened"), ended: onEnded };
      client.dial(to, Buffer.alloc(0), false);
    }, owned);

    const clients: Socket[] = Array.from({ length: COUNT }, () =>
      connect(port, "127.0.0.1").on("error", () => {}),
    );
    await until("every dial", () => seen.length === COUNT);
    assert.deepEqual(new Set(seen.map(({ isKnown }) => isKnown)), new Set([true]));
    for (const { end } of seen) {
      assert.equal(names.find(end, to) !== null, true);
      assert.equal(names.find(end, { ...to, port }) !== null, false, "to another server from the same port");
      assert.equal(names.find({ ...end, port: end.port + 1 }, { ...to, port: to.port + 1 }) !== null, false);
    }

    for (const client of clients) client.destroy();
    await until("every end", () => ended === COUNT);
    for (const { end } of seen) assert.equal(names.find(end, to) !== null, false);
  },
);

test("a dial that is refused has no name", { skip }, async () => {
  await using owned = new AsyncDisposableStack();
  const to = wayTo((await freePorts(1))[0] as number);
  const { promise: failed, resolve } = Promise.withResolvers<WorkerConnection>();
  const port = await openFront((client) => {
    client.events = { dialled() {}, failed: () => resolve(client), ended() {} };
    client.dial(to, Buffer.alloc(0), false);
  }, owned);
  const client = connect(port, "127.0.0.1").on("error", () => {});
  const held = await failed;
  assert.equal(held.dialledFrom(), null);
  held.stream().destroy();
  client.destroy();
});
