/** Streams that workers open of connections to a server of gRPC by Google's library. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { vless } from "#protocols/vless/index.ts";
import { hashOf } from "../support/connections.ts";
import { openGate, openHttp2Node } from "../support/http2-node.ts";
import { CELLS, certificate, NAME, SERVICE, uuid } from "../support/interop/cells.ts";
import { grpcio } from "../support/interop/grpcio.ts";
import { countThenAnswer, echo, openTcpOrigin } from "../support/origin.ts";
import { freePort } from "../support/peer.ts";
import { startPeerWithFiles } from "../support/peer-folder.ts";
import { until } from "../support/until.ts";

const skip =
  process.platform === "linux" ? (grpcio.absent?.() ?? false) : "SKIP streams of workers: needs Linux";
const CLIENTS = 60;

test("grpcio: many streams at once, large ones, and ends", { skip, timeout: 120_000 }, async () => {
  const port = await freePort();
  const cell = CELLS.find(({ name }) => name === "vless grpc TCP");
  const launch = cell === undefined ? null : grpcio.server(cell, port);
  assert.ok(launch !== null);
  await using _server = await startPeerWithFiles(launch.command, port, launch.files);
  await using gate = await openGate(port);
  await using node = await openHttp2Node(vless, {
    uuid,
    port: gate.port,
    tls: true,
    servername: NAME,
    fingerprint: certificate.fingerprint,
    network: "grpc",
    "grpc-opts": { "grpc-service-name": SERVICE },
  });
  await using origin = await openTcpOrigin(echo);
  await using counter = await openTcpOrigin(countThenAnswer);
  const one = async (size: number): Promise<void> => {
    using client = await node.dial(origin.port);
    const sent = randomBytes(size);
    client.send(sent);
    assert.equal(hashOf(await client.read(size)), hashOf(sent));
    client.socket.end();
    assert.equal((await client.rest()).length, 0);
  };
  await one(3_000_000);
  await Promise.all(Array.from({ length: CLIENTS }, (_, at) => one(10 + at * 3_000)));
  for (const bytes of [0, 5_000_000]) {
    using client = await node.dial(counter.port);
    client.send(Buffer.alloc(bytes));
    client.socket.end();
    assert.equal(String(await client.rest()), String(bytes));
  }
  await until("all have been reported", () => node.engine.served.length === CLIENTS + 3);
  assert.deepEqual([node.engine.asked.length, node.engine.handedOver, node.engine.deaths], [0, 0, 0]);
  assert.equal(gate.connections.length, 1);
});
