/** The least that a UDP relay by `node:dgram` can be: one association, one destination, no rules, no counting. */
import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";

const HOST = "127.0.0.1";
const HEADER_BYTES = 10;
const BUFFERS = { recvBufferSize: 4 << 20, sendBufferSize: 1 << 20 };

const server = createServer((control) => {
  const door = createSocket({ type: "udp4", ...BUFFERS });
  const out = createSocket({ type: "udp4", ...BUFFERS });
  let client = 0;
  let header = Buffer.alloc(HEADER_BYTES);
  door.on("message", (bytes, { port }) => {
    if (client !== port) {
      client = port;
      header = Buffer.from(bytes.subarray(0, HEADER_BYTES));
    }
    out.send(bytes, HEADER_BYTES, bytes.length - HEADER_BYTES, header.readUInt16BE(8), HOST);
  });
  out.on("message", (bytes) => door.send([header, bytes], client, HOST));
  for (const socket of [door, out]) socket.on("error", () => {}); // of one datagram
  out.bind(0, HOST);
  control.on("error", () => {}).on("close", () => [door, out].forEach((socket) => socket.close()));
  control.once("data", () => {
    control.write(Buffer.from([5, 0]));
    control.once("data", () =>
      door.bind(0, HOST, () => {
        const { port } = door.address();
        control.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, port >> 8, port & 255]));
      }),
    );
  });
});
server.listen(0, HOST, () => process.send?.((server.address() as AddressInfo).port));
process.on("disconnect", () => process.exit(0));
