/** A node with `smux` that a worker dials by itself, and its server, whose frames are in the test's own hands. */
import type { Socket } from "node:net";
import type { MuxRecipe } from "#core/wire-recipe.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { userIdBytes } from "#protocols/shared/user-id.ts";
import { ANSWER, COMMAND_TCP, encodeRequest } from "#protocols/vless/wire.ts";
import { MUX_DESTINATION } from "#transport/mux/preface.ts";
import { type MuxFrames, muxFramesOver, TONGUES } from "./mux-frames.ts";
import { muxRecipe } from "./mux-recipe.ts";
import { type NodeSessions, openNodeSessions } from "./node-sessions.ts";
import { openTcpOrigin } from "./origin.ts";

export type MuxNode = NodeSessions<MuxFrames>;

const id = Uint8Array.from(userIdBytes("b831381d-6324-4d53-ad4f-8cda48b30811"));
const REQUEST = encodeRequest(id, { flow: "", command: COMMAND_TCP, destination: MUX_DESTINATION });

/** In VLESS over bare TCP. */
export async function openMuxNode(
  protocol: "smux" | "yamux",
  bounds: Partial<MuxRecipe> = {},
): Promise<MuxNode> {
  const sessions: MuxFrames[] = [];
  const onSession = (socket: Socket, arrived: ByteQueue): void =>
    void sessions.push(muxFramesOver(socket, arrived, TONGUES[protocol]));
  const origin = await openTcpOrigin((socket) => answer(socket, onSession));
  const mux = muxRecipe({ protocol, base: recipe("vless", { id, flow: "" }), ...bounds });
  const by = { ...recipe("mux", {}), under: { tls: null, upgrade: null, mux } };
  const node = await openNodeSessions({ by, gone: mux.gone, origin, sessions });
  return {
    ...node,
    async dial() {
      const client = await node.dial();
      client.socket.on("error", () => {});
      return client;
    },
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
