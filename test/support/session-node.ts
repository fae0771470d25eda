/** A node of AnyTLS that a worker dials by itself, and its server, whose frames are in the test's own hands. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { SessionRecipe } from "#core/wire-recipe.ts";
import { DEFAULT_SCHEME } from "#protocols/anytls/padding.ts";
import * as wire from "#protocols/anytls/wire.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { type Frames, framesOver } from "./anytls-frames.ts";
import { type NodeSessions, openNodeSessions } from "./node-sessions.ts";
import { openTlsOrigin, tlsClient } from "./tls-origin.ts";
import { tlsProvider } from "./tls.ts";

/** Of the node, at its server. */
export interface ServedSession extends Frames {
  readonly socket: TLSSocket;
  /** Of each TLS record that came. */
  readonly records: number[];
  readonly settings: wire.Settings;
}

export type SessionNode = NodeSessions<ServedSession>;

export async function openSessionNode(
  fields: Partial<SessionRecipe> = {},
  tlsKeys: object = {},
): Promise<SessionNode> {
  const sessions: ServedSession[] = [];
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
  const origin = await openTlsOrigin({}, (socket) => void serveSession(socket, sessions));
  const by = { ...recipe("anytls", {}), under: { tls, upgrade: null, session } };
  return await openNodeSessions({ by, gone: session.gone, origin, sessions });
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
