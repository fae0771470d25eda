/** Runs in a namespace: echoes UDP and TCP at a port of every address, UDP so many ms late: `netns-late-echo.ts <port> <ms>`. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

const [port = 0, lateMs = 0] = process.argv.slice(2).map(Number);
for (const type of ["udp4", "udp6"] as const) {
  const socket = createSocket({ type, ipv6Only: type === "udp6", recvBufferSize: 1 << 20 });
  const answer = (bytes: Buffer, to: { port: number; address: string }) =>
    socket.send(bytes, to.port, to.address, () => {});
  socket.on("message", (bytes, from) =>
    lateMs === 0 ? answer(bytes, from) : setTimeout(() => answer(bytes, from), lateMs),
  );
  socket.bind(port);
  await once(socket, "listening");
}
const server = createServer({ allowHalfOpen: true }, (socket) => socket.on("error", () => {}).pipe(socket));
await once(server.listen(port, "::"), "listening");
console.log("ready");
