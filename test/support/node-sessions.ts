import assert from "node:assert/strict";
import type { WireRecipe } from "#core/wire-recipe.ts";
import type { DecidingEngine } from "./deciding-engine.ts";
import { openNodeEngine } from "./node-engine.ts";
import type { RawClient } from "./raw-client.ts";
import { socksConnect } from "./socks-client.ts";
import { until } from "./until.ts";

/** A node whose sessions workers open by themselves, and their other end, which is the test's. */
export interface NodeSessions<Session> extends AsyncDisposable {
  readonly engine: DecidingEngine;
  readonly sessions: readonly Session[];
  /** A client whose stream the node is about to open. */
  dial(): Promise<RawClient>;
  /** Until the node has opened so many sessions; the last one. */
  session(count: number): Promise<Session>;
  /** It is taken away. */
  remove(): void;
}

export interface NodeSessionsOptions<Session> {
  readonly by: WireRecipe;
  /** The word of the recipe by which the node is taken away. */
  readonly gone: SharedArrayBuffer;
  /** The node's server, which fills `sessions`; it is closed with the node. */
  readonly origin: AsyncDisposable & { readonly port: number };
  readonly sessions: readonly Session[];
}

export async function openNodeSessions<Session>({
  by,
  gone,
  origin,
  sessions,
}: NodeSessionsOptions<Session>): Promise<NodeSessions<Session>> {
  await using undo = new AsyncDisposableStack();
  undo.use(origin);
  const engine = undo.use(await openNodeEngine(origin.port, by));
  const opened = undo.move();
  return {
    engine,
    sessions,
    async dial() {
      const { client, status } = await socksConnect(engine.port, "127.0.0.1", 9);
      assert.equal(status, 0);
      return client;
    },
    async session(count) {
      await until(`session ${count}`, () => sessions.length >= count);
      return sessions[count - 1] as Session;
    },
    remove: () => void Atomics.store(new Int32Array(gone), 0, 1),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
