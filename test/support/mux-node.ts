/** A node with `smux` that a worker dials by itself, and its server, whose frames are in the test's own hands. */
import type { Socket } from "node:net";
import type { MuxRecipe } from "#core/wire-recipe.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { LOOPBACK_V4, toDestination } from "#net/address/ip.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { userIdBytes } from "#protocols/shared/user-id.ts";
import { ANSWER, COMMAND_TCP, encodeRequest } from "#protocols/vless/wire.ts";
import { MUX_DESTINATION } from "#transport/mux/preface.ts";
import { DecidingEngine } from "./deciding-engine.ts";
import { type MuxFrames, muxFramesOver, TONGUES } from "./mux-frames.ts";
import { muxRecipe } from "./mux-recipe.ts";
import { openTcpOrigin } from "./origin.ts";
import type { RawClient } from "./raw-client.ts";
import { socksConnect } from "./socks-client.ts";
import { until } from "./until.ts";

export interface MuxNode extends AsyncDisposable {
  readonly engine: DecidingEngine;
  readonly sessions: readonly MuxFrames[];
  /** A client whose stream the node is about to open. */
  dial(): Promise<RawClient>;
  /** Until the node has opened so many sessions; the last one. */
  session(count: number): Promise<MuxFrames>;
  /** It is taken away. */
  remove(): void;
}

const id = Uint8Array.from(userIdBytes("b831381d-6324-4d53-ad4f-8cda48b30811"));
const REQUEST = encodeRequest(id, { flow: "", command: COMMAND_TCP, destination: MUX_DESTINATION });

/** In VLESS over bare TCP. */
export async function openMuxNode(
  protocol: MuxRecipe["protocol"],
  bounds: Partial<MuxRecipe> = {},
): Promise<MuxNode> {
  await using undo = new AsyncDisposableStack();
  const sessions: MuxFrames[] = [];
  const onSession = (socket: Socket, arrived: ByteQueue): void =>
    void sessions.push(muxFramesOver(socket, arrived, TONGUES[protocol]));
  const origin = undo.use(await openTcpOrigin((socket) => answer(socket, onSession)));
  const mux = muxRecipe({ protocol, base: recipe("vless", { id, flow: "" }), ...bounds });
  const engine = undo.use(await DecidingEngine.open(1));
  await until("the first version", () => engine.version > 0);
  const by = { ...recipe("mux", {}), under: { tls: null, upgrade: null, mux } };
  engine.node = { server: toDestination(LOOPBACK_V4, origin.port), recipe: by };
  engine.change([{ is: "always" }]);
  await until("the worker has it", () => engine.dropped.length > 0);
  const opened = undo.move();
  return {
    engine,
    sessions,
    async dial() {
      const { client, status } = await socksConnect(engine.port, "127.0.0.1", 9);
      if (status !== 0) throw new Error(`the proxy answered ${status}`);
      client.socket.on("error", () => {});
      return client;
    },
    async session(count) {
      await until(`session ${count}`, () => sessions.length >= count);
      return sessions[count - 1] as MuxFrames;
    },
    remove: () => void Atomics.store(new Int32Array(mux.gone), 0, 1),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function answer(socket: Socket, onSession: (socket: Socket, arrived: ByteQueue) => void): void {
  const arrived = new ByteQueue();
  const onData = (bytes: Buffer): void => {
    arrived.push(bytes);
    if (arrived.take(REQUEST.length) === null) return;
    socket.off("data", onData);
    socket.write(ANSWER);
    onSession(socket, arrived);
  };
  socket.on("data", onData);
}
