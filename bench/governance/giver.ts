/**
 * The end of flows that gives without end, in a process of its own, so that the one that counts is never late: an origin
 * of downloads, and the clients of uploads, one for each message.
 */
import { createServer, type AddressInfo } from "node:net";
import { pour, tunnel, type Way } from "./tunnel.ts";

const origin = createServer({ noDelay: true }, (socket) => {
  socket.on("error", () => {}); // the end of a measurement
  socket.once("data", () => pour(socket));
});
origin.listen({ port: 0, host: "0.0.0.0", backlog: 1024 }, () => {
  process.send?.((origin.address() as AddressInfo).port);
});
process.on("message", ({ way, name }: { way: Way; name: string }) => {
  void tunnel(way, () => {}).then((socket) => {
    socket.write(`${name}\n`);
    pour(socket);
    process.send?.(name);
  });
});
process.on("disconnect", () => process.exit(0));
