/** Child of controller.ts: a dashboard that reads /connections. Told the port, answers every frame with its size. */
import { WebSocket } from "ws";

const port = Number(process.argv[2]);
const socket = new WebSocket(`ws://127.0.0.1:${port}/connections?interval=1000`, {
  maxPayload: 64 * 1_048_576,
});
socket.on("message", (frame: Buffer) => process.send?.(frame.length));
socket.on("close", () => process.exit());
process.on("disconnect", () => process.exit());
