/** Servers at the far end of a test: what a proxied client talks to. Loopback, port 0. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import type { Destination, Ip } from "#core/session.ts";

export interface Origin extends AsyncDisposable {
  readonly port: number;
  readonly destination: Destination;
}

/** Each connection is given to `on`; it has an 'error' listener, `allowHalfOpen` and `noDelay`. */
export async function openTcpOrigin(on: (socket: Socket) => void, ip: Ip = LOOPBACK_V4): Promise<Origin> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {}); // resets are part of the tests
    socket.once("close", () => sockets.delete(socket));
    on(socket);
  });
  server.listen(0, ip);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    destination: { host: null, ip, port },
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

/** Sends everything back, the end too. */
export const echo = (socket: Socket): void => void socket.pipe(socket);

/** Says nothing until the client has ended; then answers with how many bytes came, and ends. */
export function countThenAnswer(socket: Socket): void {
  let bytes = 0;
  socket.on("data", (chunk: Buffer) => (bytes += chunk.length));
  socket.on("end", () => socket.end(`${bytes}`));
}

/** Ends at once; what the client sends afterwards is given to `on` when the client has ended, too. */
export const endThenListen =
  (on: (received: Buffer) => void) =>
  (socket: Socket): void => {
    const chunks: Buffer[] = [];
    socket.end("bye");
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("end", () => on(Buffer.concat(chunks)));
  };

/** Sends `size` bytes of a repeating pattern and ends. `sent` tells how many were taken from it so far. */
export function source(size: number): { on: (socket: Socket) => void; sent: () => number } {
  const block = Buffer.alloc(64 * 1024, "0123456789abcdef");
  let sent = 0;
  const on = (socket: Socket): void => {
    const more = (): void => {
      while (sent < size) {
        const piece = block.subarray(0, Math.min(block.length, size - sent));
        sent += piece.length;
        if (!socket.write(piece)) return void socket.once("drain", more);
      }
      socket.end();
    };
    socket.resume();
    more();
  };
  return { on, sent: () => sent };
}

/** Waits until a counter stands still: nothing is read any more. */
export async function untilHeldUp(sent: () => number): Promise<void> {
  for (let last = -1; last !== sent();) {
    last = sent();
    await delay(200);
  }
}

/** Answers the first byte with a reset. */
export const reset = (socket: Socket): void => void socket.once("data", () => socket.resetAndDestroy());

/** Sends every datagram back to where it came from. */
export async function openUdpEcho(ip: Ip = LOOPBACK_V4): Promise<Origin> {
  const socket = createSocket(ip.includes(":") ? "udp6" : "udp4");
  socket.on("message", (payload, { port, address }) => socket.send(payload, port, address));
  socket.bind(0, ip);
  await once(socket, "listening");
  const { port } = socket.address();
  return {
    port,
    destination: { host: null, ip, port },
    async [Symbol.asyncDispose]() {
      socket.close();
      await once(socket, "close");
    },
  };
}
