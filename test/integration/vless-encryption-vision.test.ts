/** xtls-rprx-vision in VLESS Encryption: what leaves the records, and what an onlooker sees of it. */
import assert from "node:assert/strict";
import type { Duplex } from "node:stream";
import { describe, test } from "node:test";
import { connect as tlsConnect } from "node:tls";
import type { RelayBackend } from "#dataplane/backend.ts";
import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { vless } from "#protocols/vless/index.ts";
import type { VisionStream } from "#protocols/vless/vision-stream.ts";
import { relayPaths } from "../support/carriers.ts";
import { inbox, readAll } from "../support/client.ts";
import { exchange } from "../support/exchange.ts";
import { countThenAnswer, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";
import { clientTls, serverTls } from "../support/tls-sides.ts";
import { converse, openTap, openTlsOrigin } from "../support/vision.ts";

const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const flow = "xtls-rprx-vision";
const CARRIERS = {
  "TCP alone": { server: {}, client: {} },
  TLS: { server: serverTls, client: clientTls },
  WebSocket: { server: { "ws-path": "/w" }, client: { network: "ws", "ws-opts": { path: "/w" } } },
} as const;

async function openVision(
  appearance: "native" | "xorpub" | "random",
  carrier: keyof typeof CARRIERS,
  backend: RelayBackend | null,
  cut: number | null = null,
) {
  await using undo = new AsyncDisposableStack();
  const { client: encryption, server: decryption } = newEncryption(appearance, "x25519");
  const { server: serverKeys, client: clientKeys } = CARRIERS[carrier];
  const users = [
    { username: "ann", uuid, flow },
    { username: "bob", uuid: "plain" },
  ];
  const server = undo.use(await openServer(vless, { ...serverKeys, decryption, users }, undefined, backend));
  const tap = undo.use(await openTap(server.port, cut));
  const keys = { ...clientKeys, server: "127.0.0.1", port: tap.port, udp: true, encryption };
  const outbound = undo.use(await openClient(vless, { ...keys, uuid, flow }));
  const plain = undo.use(await openClient(vless, { ...keys, uuid: "plain" }));
  const all = undo.move();
  return { outbound, plain, tap, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

const ways = (await relayPaths()).filter(({ name }) => name !== "engine");

for (const { name, backend } of ways)
  describe(`relayed by the ${name} way`, () => {
    for (const carrier of ["TCP alone", "TLS", "WebSocket"] as const)
      for (const appearance of ["native", "xorpub", "random"] as const)
        test(
          `${appearance} over ${carrier}: both directions leave the records, twice`,
          { timeout: 60_000 },
          async () => {
            await using vision = await openVision(appearance, carrier, backend);
            for (let time = 0; time < 2; time++) {
              const stream = await converse(vision.outbound, "TLSv1.3", 2 << 20);
              assert.deepEqual(stream.raw, { read: true, write: true });
            }
            const inner = vision.tap.down().includes(Buffer.from("170303"), "hex");
            if (appearance === "random" && carrier === "TCP alone")
              assert.ok(!inner || looksRandom(vision.tap.down()), "no header shows");
          },
        );

    for (const appearance of ["native", "random"] as const) {
      test(`${appearance}: the wire cut into pieces of 7 bytes`, { timeout: 60_000 }, async () => {
        await using vision = await openVision(appearance, "TCP alone", backend, 7);
        const stream = await converse(vision.outbound, "TLSv1.3", 100_000);
        assert.deepEqual(stream.raw, { read: true, write: true });
      });

      test(
        `${appearance}: TLS 1.2 inside, and no TLS, stay in their records`,
        { timeout: 60_000 },
        async () => {
          await using vision = await openVision(appearance, "TCP alone", backend);
          const stream = await converse(vision.outbound, "TLSv1.2", 1 << 20);
          assert.deepEqual(stream.raw, { read: false, write: false });
          const plain = (await exchange(vision.outbound, 1 << 20)) as VisionStream;
          assert.deepEqual(plain.raw, { read: false, write: false });
        },
      );

      test(`${appearance}: a user without a flow beside one with it`, { timeout: 30_000 }, async () => {
        await using vision = await openVision(appearance, "TCP alone", backend);
        await exchange(vision.plain, 1 << 20);
      });

      test(`${appearance}: ends, before the switch and behind it`, { timeout: 30_000 }, async () => {
        await using vision = await openVision(appearance, "TCP alone", backend);
        const signal = AbortSignal.timeout(20_000);
        await using counter = await openTcpOrigin(countThenAnswer);
        for (const size of [0, 1, 100_000]) {
          const stream = await vision.outbound.connect(counter.destination, { signal, metadata: null });
          stream.end(Buffer.alloc(size));
          assert.equal(String(await readAll(stream)), `${size}`);
          stream.destroy();
        }
        await using origin = await openTlsOrigin("TLSv1.3", (socket) => {
          let bytes = 0;
          socket.on("data", (chunk: Buffer) => (bytes += chunk.length));
          socket.on("end", () => socket.end(`${bytes}`));
        });
        const stream = await vision.outbound.connect(origin.destination, { signal, metadata: null });
        const inner = tlsConnect({
          socket: stream as Duplex,
          servername: "server.test",
          rejectUnauthorized: false,
        });
        inner.end(Buffer.alloc(300_000));
        assert.equal(String(await readAll(inner)), "300000");
        assert.deepEqual((stream as VisionStream).raw, { read: true, write: true });
        stream.destroy();
      });

      test(`${appearance}: datagrams`, { timeout: 30_000 }, async () => {
        await using vision = await openVision(appearance, "TCP alone", backend);
        await using echo = await openUdpEcho();
        const signal = AbortSignal.timeout(20_000);
        const opened = await vision.outbound.associate(echo.destination, { signal, metadata: null });
        const box = inbox(opened);
        for (let size = 1; size < 8000; size += 1500) {
          opened.send({ payload: Buffer.alloc(size, 7), destination: echo.destination });
          assert.equal((await box.next()).payload.length, size);
        }
        await opened[Symbol.asyncDispose]();
      });
    }
  });

/** Three bytes in a row come by chance once in 16 million places, and not once a record. */
function looksRandom(bytes: Buffer): boolean {
  return bytes.toString("latin1").split("\x17\x03\x03").length - 1 < 5;
}
