/** More sockets at the address of a bound one, each for another thread, among which the kernel chooses by a program. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { Endpoint } from "#core/endpoint.ts";
import type { SharedSocket, SocketProgram } from "#core/sockets.ts";
import { familyOf } from "#net/address/ip.ts";
import { datagramDescriptorOf } from "./datagram-descriptor.ts";
import { BUFFERS, type DatagramSocket, type DatagramSockets } from "./datagram-socket.ts";

export interface SharedPortParts {
  readonly first: DatagramSocket;
  readonly at: Endpoint;
  readonly sockets: DatagramSockets;
  /** As of `DatagramsAsk`. */
  configure(fd: number): void;
}

/** `count` of them, in the order in which the program counts them, the first one being 0. Null: the system refuses. */
export async function sharePort(
  parts: SharedPortParts,
  count: number,
  program: SocketProgram,
): Promise<readonly SharedSocket[] | null> {
  const opened: DatagramSocket[] = [];
  try {
    if (!parts.first.admitOthers()) return null;
    while (opened.length < count) opened.push(await openBeside(parts));
    if (opened.every(({ isLendable }) => isLendable) && parts.first.chooseBy(program)) return opened;
  } catch {
    // A port that only root may bind, or no descriptor is left.
  }
  for (const one of opened) one.close();
  return null;
}

async function openBeside({ at, sockets, configure }: SharedPortParts): Promise<DatagramSocket> {
  const type = familyOf(at.ip) === 6 ? "udp6" : "udp4";
  const socket = createSocket({ type, reusePort: true, ...BUFFERS });
  try {
    const listening = once(socket, "listening");
    socket.bind({ address: at.ip, port: at.port, exclusive: true });
    await listening;
    configure(datagramDescriptorOf(socket));
  } catch (error) {
    socket.close();
    throw error;
  }
  socket.on("error", () => {}); // of one peer
  return sockets.take(socket, () => {});
}
