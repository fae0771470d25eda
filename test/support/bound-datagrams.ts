import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { DatagramSocket, DatagramSockets, OnDatagram } from "#net/udp/datagram-socket.ts";

/** A socket of its own for the test, on port 0 of the address; `recvBufferSize`: room for a burst. */
export async function boundDatagrams(
  sockets: DatagramSockets,
  address: string,
  on: OnDatagram,
  recvBufferSize?: number,
): Promise<DatagramSocket> {
  const type = address.includes(":") ? "udp6" : "udp4";
  const socket = createSocket(recvBufferSize === undefined ? { type } : { type, recvBufferSize });
  socket.on("error", () => {}); // of one datagram
  socket.bind({ address, port: 0 });
  await once(socket, "listening");
  const bound = sockets.take(socket, on);
  bound.begin();
  return bound;
}
