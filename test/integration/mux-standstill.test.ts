/** Streams of one session that hold each other's ways up: what waits in one direction never stops the other one. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { toDestination } from "#net/address/ip.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { userIdBytes } from "#protocols/shared/user-id.ts";
import { vless } from "#protocols/vless/index.ts";
import { openKeptClients } from "../support/kept-clients.ts";
import { skip } from "../support/kept-sessions.ts";
import { muxRecipe } from "../support/mux-recipe.ts";
import { openNodeEngine } from "../support/node-engine.ts";
import { openTcpOrigin, untilHeldUp } from "../support/origin.ts";
import { openPair } from "../support/protocol-pair.ts";
import { socksConnect } from "../support/socks-client.ts";
import { until } from "../support/until.ts";

const STREAMS = 20;
/** More than a stream's windows and the sockets of either side take. */
const BULK = randomBytes(16 << 20);
/** More than a stream's window. */
const ANSWER = randomBytes(3 << 20);
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const USERS = { "allow-insecure": true, users: [{ username: "ann", uuid }] };

/** Opens streams of one session. */
interface Session extends AsyncDisposable {
  connect(port: number): Promise<Duplex>;
}

type Protocol = "yamux" | "h2mux";

/** Both sides by the event loop. */
async function byEventLoop(protocol: Protocol): Promise<Session> {
  const smux = { enabled: true, protocol, "max-connections": 1 };
  const pair = await openPair(vless, USERS, vless, { uuid, smux });
  return {
    async connect(port) {
      const context = { signal: AbortSignal.timeout(20_000), metadata: null };
      return await pair.outbound.connect(toDestination("127.0.0.1", port), context);
    },
    [Symbol.asyncDispose]: () => pair[Symbol.asyncDispose](),
  };
}

/** Both sides by workers. */
async function byWorkers(): Promise<Session> {
  await using undo = new AsyncDisposableStack();
  const server = undo.use(await openKeptClients(vless, USERS));
  const base = recipe("vless", { id: Uint8Array.from(userIdBytes(uuid)), flow: "" });
  const mux = muxRecipe({ protocol: "yamux", base, maxConnections: 1 });
  const by = { ...recipe("mux", {}), under: { tls: null, upgrade: null, mux } };
  const engine = undo.use(await openNodeEngine(server.port, by));
  const opened = undo.move();
  return {
    async connect(port) {
      const { client, status } = await socksConnect(engine.port, "127.0.0.1", port);
      assert.equal(status, 0);
      return client.socket.removeAllListeners("data").pause();
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The next bytes of the stream, which may go on. */
async function isTold(stream: Duplex, bytes: Buffer): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let got = 0;
  const take = (piece: Buffer): void => {
    if (!piece.equals(bytes.subarray(got, got + piece.length))) reject(new Error("changed on the way"));
    got += piece.length;
    if (got === bytes.length) resolve();
  };
  const lost = (): void => reject(new Error(`closed after ${got} of ${bytes.length} bytes`));
  const standing = (): void => reject(new Error(`stands still after ${got} of ${bytes.length} bytes`));
  const stands = setTimeout(standing, 20_000);
  stream.on("data", take).once("close", lost).resume();
  try {
    await promise;
  } finally {
    clearTimeout(stands);
    stream.off("data", take).off("close", lost).pause();
  }
}

const unsent = (streams: readonly Duplex[]) => (): number =>
  streams.reduce((sum, { writableLength }) => sum + writableLength, 0);

const SESSIONS = {
  "yamux, both sides by the event loop": () => byEventLoop("yamux"),
  "yamux, both sides by workers": byWorkers,
  "h2mux, both sides by the event loop": () => byEventLoop("h2mux"),
};

for (const [name, open] of Object.entries(SESSIONS))
  for (const waiting of ["uploads", "downloads"] as const)
    test(`${name}: ${waiting} that wait for their readers`, { skip, timeout: 60_000 }, async () => {
      const accepted: Socket[] = [];
      await using origin = await openTcpOrigin((socket) => void accepted.push(socket.pause()));
      await using session = await open();
      const near: Duplex[] = [];
      const far: Socket[] = [];
      for (let at = 0; at < STREAMS; at++) {
        const stream = await session.connect(origin.port);
        near.push(stream.on("error", () => {}).pause());
        stream.write("x");
        await until("it is accepted", () => accepted.length > at);
        const socket = accepted[at] as Socket;
        far.push(socket);
        await isTold(socket, Buffer.from("x"));
      }
      const [full, quick] = waiting === "uploads" ? [near, far] : [far, near];
      for (const stream of full) stream.write(BULK);
      await untilHeldUp(unsent(full));
      // Each of those that wait is read once it has its answer.
      await Promise.all(
        full.map(async (stream, at) => {
          const other = quick[at] as Duplex;
          other.write(ANSWER);
          await isTold(stream, ANSWER);
          await isTold(other, BULK);
        }),
      );
      for (const stream of [...near, ...far]) stream.destroy();
    });
