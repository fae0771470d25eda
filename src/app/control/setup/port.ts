import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import type { PortQuestion } from "#core/control.ts";
import { listenFault } from "#core/errors.ts";

/** Listens there for a moment. Null: it can; else why not. */
export async function portFault({ host, port, network }: PortQuestion): Promise<string | null> {
  try {
    await (network === "tcp" ? tryTcp(host, port) : tryUdp(host, port));
    return null;
  } catch (error) {
    return listenFault(error);
  }
}

async function tryTcp(host: string, port: number): Promise<void> {
  const server = createServer((socket) => socket.destroy());
  try {
    await once(server.listen({ host, port, exclusive: true }), "listening");
  } finally {
    server.close();
  }
}

async function tryUdp(address: string, port: number): Promise<void> {
  const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
  try {
    socket.bind({ address, port, exclusive: true });
    await once(socket, "listening");
  } finally {
    socket.close();
  }
}
