/** A node of AnyTLS that a worker dials by itself, and its server, whose frames are in the test's own hands. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { SessionRecipe } from "#core/wire-recipe.ts";
import { LOOPBACK_V4, toDestination } from "#net/address/ip.ts";
import { DEFAULT_SCHEME } from "#protocols/anytls/padding.ts";
import * as wire from "#protocols/anytls/wire.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { type Frames, framesOver } from "./anytls-frames.ts";
import { DecidingEngine } from "./deciding-engine.ts";
import type { RawClient } from "./raw-client.ts";
import { socksConnect } from "./socks-client.ts";
import { openTlsOrigin, tlsClient } from "./tls-origin.ts";
import { tlsProvider } from "./tls.ts";
import { until } from "./until.ts";

/** Of the node, at its server. */
export interface ServedSession extends Frames {
  readonly socket: TLSSocket;
  /** Of each TLS record that came. */
  readonly records: number[];
  readonly settings: wire.Settings;
}

export interface SessionNode extends AsyncDisposable {
  readonly engine: DecidingEngine;
  readonly sessions: readonly ServedSession[];
  /** A client whose stream the node is about to open. */
  dial(): Promise<RawClient>;
  /** Until the node has opened so many sessions; the last one. */
  session(count: number): Promise<ServedSession>;
  /** Its node is taken away. */
  remove(): void;
}

export async function openSessionNode(
  fields: Partial<SessionRecipe> = {},
  tlsKeys: object = {},
): Promise<SessionNode> {
  await using undo = new AsyncDisposableStack();
  const sessions: ServedSession[] = [];
  const origin = undo.use(await openTlsOrigin({}, (socket) => void serveSession(socket, sessions)));
  const client = await tlsClient(tlsProvider, tlsKeys);
  const tls = client.recipe?.() ?? null;
  assert.ok(tls !== null);
  const session: SessionRecipe = {
    id: randomUUID(),
    hash: Uint8Array.from(wire.passwordHash("letmein")),
    client: "test/1",
    scheme: Uint8Array.from(DEFAULT_SCHEME.raw),
    reuses: true,
    checkIntervalMs: 30_000,
    timeoutMs: 30_000,
    minIdle: 0,
    gone: new SharedArrayBuffer(4),
    ...fields,
  };
  const engine = undo.use(await DecidingEngine.open(1));
  await until("the first version", () => engine.version > 0);
  const by = { ...recipe("anytls", {}), under: { tls, upgrade: null, session } };
  engine.node = { server: toDestination(LOOPBACK_V4, origin.port), recipe: by };
  engine.change([{ is: "always" }]);
  await until("the worker has it", () => engine.dropped.length > 0);
  const opened = undo.move();
  return {
    engine,
    sessions,
    async dial() {
      const { client: one, status } = await socksConnect(engine.port, "127.0.0.1", 9);
      assert.equal(status, 0);
      return one;
    },
    async session(count) {
      await until(`session ${count}`, () => sessions.length >= count);
      return sessions[count - 1] as ServedSession;
    },
    remove: () => void Atomics.store(new Int32Array(session.gone), 0, 1),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

async function serveSession(socket: TLSSocket, sessions: ServedSession[]): Promise<void> {
  socket.setNoDelay(true).on("error", () => {});
  const records: number[] = [];
  socket.on("data", (bytes: Buffer) => records.push(bytes.length));
  const frames = framesOver(socket, true);
  const { data } = await frames.next();
  frames.send(wire.encodeFrame(wire.SERVER_SETTINGS, 0, Buffer.from("v=2")));
  sessions.push({ ...frames, records, settings: wire.decodeSettings(data) });
}
