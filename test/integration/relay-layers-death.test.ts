/** A worker ends that has sealed messages over WebSocket and TLS: its connections end, and nothing of them is freed twice. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Duplex } from "node:stream";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { CountingCarrier } from "../support/carriers.ts";
import { echoed, outcome } from "../support/client.ts";
import { encryptedForm } from "../support/encrypted-forms.ts";
import { nativeTls } from "../support/native-tls.ts";
import { type Form, openChain } from "../support/node-chain.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { behindPlugin } from "../support/plugin-forms.ts";
import { clientTls, serverTls, uuid } from "../support/tls-sides.ts";
import { tlsLibrary } from "../support/tls.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

const skip = nativeTls === null ? "SKIP layers in workers: needs Linux and node:ffi" : false;
const CONNECTIONS = 8;
const WEBSOCKET = { network: "ws", "ws-opts": { path: "/up" } };

const FORMS: Readonly<Record<string, Form>> = {
  VMess: {
    protocol: vmess,
    server: { ...serverTls, users: [{ username: "ann", uuid }], "ws-path": "/up" },
    client: { uuid, ...clientTls, ...WEBSOCKET },
  },
  "VLESS Encryption": encryptedForm(
    "native",
    { ...serverTls, "ws-path": "/up" },
    { ...clientTls, ...WEBSOCKET },
  ),
  "Shadowsocks behind a plugin": behindPlugin("2022-blake3-aes-128-gcm", "WebSocket and TLS"),
  "Shadowsocks of the older ciphers behind a plugin": behindPlugin("aes-128-gcm", "WebSocket and TLS"),
};

for (const [name, form] of Object.entries(FORMS))
  test(
    `${name}: the connections of a worker that ends are over, and new ones go on without it`,
    { skip },
    async () => {
      using killer = new WorkerKiller();
      const deaths: number[] = [];
      const onDeath = (_: string, left: number): void => void deaths.push(left);
      await using engine = await openWorkerBackend({ tlsLibrary, threads: 1, onDeath });
      const backend = new CountingCarrier(engine, 1);
      await using origin = await openTcpOrigin(echo);
      await using way = await openChain(form, backend)(origin.port);
      const dial = async (): Promise<Duplex> => {
        const stream = await way.dial();
        stream.on("error", () => {});
        await echoed(stream, 200_000);
        await echoed(stream, 200_000); // by the thread, while it is there
        return stream;
      };
      const streams = await Promise.all(Array.from({ length: CONNECTIONS }, dial));
      assert.equal(backend.taken, 2 * CONNECTIONS); // on both sides
      const ends = streams.map((stream) => outcome(stream.resume()));
      await killer.kill("relay");
      await Promise.all(ends);
      assert.deepEqual(deaths, [0]);
      (await dial()).destroy();
      assert.equal(backend.taken, 2 * CONNECTIONS);
    },
  );
