import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import type { WorkerClient } from "#dataplane/workers/main/worker-connection.ts";
import type { WorkerConnection } from "#core/accepted.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import { byWorkers } from "../support/accepted.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { until } from "../support/until.ts";
import { tlsLibrary } from "../support/tls.ts";

test("a client that has said all and ended before it was dialled for is half-closed", async () => {
  const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
  await using opened = new AsyncDisposableStack();
  const origin = opened.use(await openTcpOrigin(resolve)); // it says nothing
  const engine = opened.use(await openWorkerBackend({ tlsLibrary, threads: 1, onDeath() {} }));
  const pool = new SocketPool();
  const asked = Promise.withResolvers<WorkerClient>();
  const on = (client: WorkerConnection): void => asked.resolve(client as WorkerClient);
  const where = { ip: LOOPBACK_V4, port: 0, owner: "test" };
  const lease = opened.use(await pool.leaseTcp(where, byWorkers(on)));
  pool.useThreads(engine.accepting);
  lease.activate();
  const client = connect({ port: lease.endpoint.port, host: "127.0.0.1", allowHalfOpen: true });
  opened.defer(() => void client.destroy());
  client.end("ping");
  await once(client, "finish");
  const held = await asked.promise;
  held.events = { dialled() {}, failed() {}, ended() {} };
  const way = {
    ip: LOOPBACK_V4,
    port: origin.port,
    routingMark: 0,
    interfaceName: "",
    probes: null,
    timeoutMs: 5_000,
    isFirstOfMany: false,
  };
  held.dial(way, Buffer.alloc(0), false);
  const remote = (await accepted).resume();
  await once(remote, "end"); // the thread has passed it on
  const { table } = held.thread;
  await until("the thread says so", () => table.halfClosed[held.slot] === 1);
});
