/** A worker ends that has chunks of VMess over WebSocket and TLS: its connections end, and nothing of them is freed twice. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Duplex } from "node:stream";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { CountingCarrier } from "../support/carriers.ts";
import { echoed, outcome } from "../support/client.ts";
import { nativeTls } from "../support/native-tls.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";
import { clientTls, serverTls, uuid } from "../support/tls-sides.ts";
import { tlsLibrary } from "../support/tls.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

const skip = nativeTls === null ? "SKIP layers in workers: needs Linux and node:ffi" : false;
const CONNECTIONS = 8;

test("the connections of a worker that ends are over, and new ones go on without it", { skip }, async () => {
  using killer = new WorkerKiller();
  const deaths: number[] = [];
  const onDeath = (_: string, left: number): void => void deaths.push(left);
  await using engine = await openWorkerBackend({ tlsLibrary, threads: 1, onDeath });
  const backend = new CountingCarrier(engine, 1);
  await using origin = await openTcpOrigin(echo);
  const users = [{ username: "ann", uuid }];
  await using server = await openServer(vmess, { ...serverTls, users, "ws-path": "/up" }, undefined, backend);
  const address = { server: "127.0.0.1", port: server.port };
  const way = { network: "ws", "ws-opts": { path: "/up" } };
  const dial = async (): Promise<Duplex> => {
    const node = await openClient(vmess, { ...address, uuid, ...clientTls, ...way });
    const stream = await node.connect(origin.destination, {
      signal: AbortSignal.timeout(10_000),
      metadata: null,
    });
    stream.on("error", () => {});
    await echoed(stream, 200_000);
    await echoed(stream, 200_000); // by the thread, while it is there
    return stream;
  };
  const streams = await Promise.all(Array.from({ length: CONNECTIONS }, dial));
  assert.equal(backend.taken, CONNECTIONS);
  const ends = streams.map((stream) => outcome(stream.resume()));
  await killer.kill("relay");
  await Promise.all(ends);
  assert.deepEqual(deaths, [0]);
  (await dial()).destroy();
  assert.equal(backend.taken, CONNECTIONS);
});
