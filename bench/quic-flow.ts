/** Sockets of the benchmarks of QUIC: a bound one, and the way of a client to a port. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { DatagramFlow } from "#core/session.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { type DatagramSocket, DatagramSockets, type OnDatagram } from "#net/udp/datagram-socket.ts";

const BUFFERS = { recvBufferSize: 4 * 1024 * 1024, sendBufferSize: 2 * 1024 * 1024 };

/** Packets are marked ECT(0), but with BENCH_ECN=0. */
export const USES_ECN = process.env["BENCH_ECN"] !== "0";

export async function bind(on: OnDatagram): Promise<DatagramSocket> {
  const socket = createSocket({ type: "udp4", ...BUFFERS });
  socket.on("error", () => {});
  socket.bind(0, LOOPBACK_V4);
  await once(socket, "listening");
  const bound = new DatagramSockets().take(socket, on);
  if (USES_ECN) bound.useEcn();
  bound.begin();
  return bound;
}

export async function flowTo(port: number): Promise<DatagramFlow> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const destination = { host: null, ip: LOOPBACK_V4, port };
  let take: Parameters<DatagramFlow["receive"]>[0] = () => {};
  const socket = await bind((payload, _from, ecn) => take({ payload, destination, ecn }));
  return {
    send: ({ payload, ecn = 0 }) => socket.send(null, payload, LOOPBACK_V4, port, ecn > 0),
    sendRun: ({ payload, ecn = 0 }, size) => socket.sendRun(payload, size, LOOPBACK_V4, port, ecn > 0),
    useEcn: () => USES_ECN,
    receive: (on) => void (take = on),
    closed: promise,
    async [Symbol.asyncDispose]() {
      socket.close();
      resolve();
    },
  };
}
