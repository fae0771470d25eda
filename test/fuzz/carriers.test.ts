/** Listeners of every carrier meet nonsense, torn and altered openings; afterwards they serve as before. */
import assert from "node:assert/strict";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { encodeRequest } from "#protocols/vless/wire.ts";
import { encodeRequest as encodeTrojan, keyOf } from "#protocols/trojan/wire.ts";
import { encodeBlock } from "#protocols/shared/vision-padding.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { exchange } from "../support/exchange.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openPair, openServer } from "../support/protocol-pair.ts";
import { openRawClient } from "../support/raw-client.ts";

const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const id = Buffer.from(uuid.replaceAll("-", ""), "hex");
const destination = { host: "origin.test", ip: null, port: 9 };
const mux = encodeRequest(id, { flow: "", command: 3, destination: null });
const upgrade = Buffer.from(
  "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: ALgxOB1jJE1TrU-M2kizCBEAAVXxAX8AAAE\r\n\r\n",
);
const http2 = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  Buffer.from("000000040000000000", "hex"),
  Buffer.from("0000050104000000018386418a", "hex"),
]);
const openings: readonly Buffer[] = [
  encodeRequest(id, { flow: "", command: 1, destination }),
  encodeRequest(id, { flow: "xtls-rprx-vision", command: 1, destination }),
  encodeRequest(id, { flow: "", command: 2, destination }),
  Buffer.concat([
    mux,
    Buffer.from("00140000010102003501080808080102030405060708000361626300040000030000040009", "hex"),
  ]),
  Buffer.concat([mux, encodeBlock(id, 0, Buffer.from("x"), false)]),
  encodeTrojan(keyOf("p"), { command: 1, destination }),
  encodeTrojan(keyOf("p"), { command: 3, destination }),
  upgrade,
  Buffer.concat([upgrade, randomBytes(100)]),
  http2,
  Buffer.alloc(0),
];

/** One in three as it is, one torn, one with altered bytes; something random behind it. */
function altered(opening: Buffer): Buffer {
  const kind = randomInt(3);
  const bytes = Buffer.from(kind === 1 ? opening.subarray(0, randomInt(opening.length + 1)) : opening);
  if (kind === 2)
    for (let count = randomInt(1, 4); count > 0 && bytes.length > 0; count--)
      bytes[randomInt(bytes.length)] = randomInt(256);
  return Buffer.concat([bytes, randomBytes(randomInt(200))]);
}

async function visit(port: number, bytes: Buffer): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => {}).resume();
  const closed = new Promise((resolve) => socket.once("close", resolve)); // a reset is an answer, too
  await once(socket, "connect");
  const cut = randomInt(bytes.length + 1);
  socket.write(bytes.subarray(0, cut));
  socket.write(bytes.subarray(cut));
  if (randomInt(2) === 0) socket.end();
  const timer = setTimeout(() => (randomInt(2) === 0 ? socket.destroy() : socket.resetAndDestroy()), 30);
  await closed;
  clearTimeout(timer);
}

const insecure = { "allow-insecure": true };
const pairs = [
  ["vless over tcp", vless, { ...insecure, users: [{ uuid }] }, { uuid }],
  [
    "vless over ws",
    vless,
    { ...insecure, "ws-path": "/ws", users: [{ uuid }] },
    { uuid, network: "ws", "ws-opts": { path: "/ws" } },
  ],
  [
    "vless over grpc and ws",
    vless,
    { ...insecure, "ws-path": "/ws", "grpc-service-name": "GunService", users: [{ uuid }] },
    { uuid, network: "grpc" },
  ],
] as const;

describe("hostile visitors", () => {
  for (const [name, protocol, server, client] of pairs)
    test(name, { timeout: 60_000 }, async () => {
      await using pair = await openPair(protocol, server, protocol, client);
      for (let round = 0; round < 12; round++)
        await Promise.all(openings.map((opening) => visit(pair.server.port, altered(opening))));
      await exchange(pair.outbound, 100_000);
    });

  test("trojan over tcp", { timeout: 60_000 }, async () => {
    await using server = await openServer(trojan, { ...insecure, users: [{ password: "p" }] });
    for (let round = 0; round < 12; round++)
      await Promise.all(openings.map((opening) => visit(server.port, altered(opening))));
    await using origin = await openTcpOrigin(echo);
    using client = await openRawClient(server.port);
    client.send(encodeTrojan(keyOf("p"), { command: 1, destination: origin.destination }));
    client.send("still serving");
    assert.equal(await client.until("still serving"), "still serving");
  });
});
