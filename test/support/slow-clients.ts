/** Clients that send the head of a request byte by byte, and one that asks politely while they do. */
import { once } from "node:events";
import { Agent, get } from "node:http";
import { connect, type Socket } from "node:net";

const HEAD = `GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ${"x".repeat(200)}`;
const DRIP_MS = 1000;
/** A listening queue is shorter than a crowd. */
const BATCH = 100;

export interface SlowClients extends Disposable {
  /** Those that are still connected. */
  readonly open: number;
}

export async function slowClients(port: number, count: number): Promise<SlowClients> {
  const sockets = new Set<Socket>();
  let sentBytes = 1;
  for (let opened = 0; opened < count; opened += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, count - opened) }, () => {
      const socket = connect({ host: "127.0.0.1", port, noDelay: true });
      socket.on("error", () => {}); // the server gave it up; `close` follows
      socket.on("close", () => sockets.delete(socket));
      sockets.add(socket);
      return socket;
    });
    await Promise.all(batch.map((socket) => once(socket, "connect")));
    for (const socket of batch) socket.write(HEAD[0] as string);
  }
  const drip = setInterval(() => {
    const next = HEAD.charAt(sentBytes++ % HEAD.length);
    for (const socket of sockets) socket.write(next);
  }, DRIP_MS);
  return {
    get open() {
      return sockets.size;
    },
    [Symbol.dispose]() {
      clearInterval(drip);
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** How long answers took in ms, ascending: `count` requests, every other one over a connection of its own. */
export async function latencies(port: number, count: number): Promise<readonly number[]> {
  const kept = new Agent({ keepAlive: true, maxSockets: 1 });
  const took: number[] = [];
  for (let at = 0; at < count; at++) {
    const startedMs = performance.now();
    const request = get({ host: "127.0.0.1", port, path: "/version", agent: at % 2 === 0 ? kept : false });
    const [response] = await once(request, "response");
    await once((response as NodeJS.ReadableStream).resume(), "end");
    took.push(performance.now() - startedMs);
  }
  kept.destroy();
  return took.sort((a, b) => a - b);
}

/** The value that this share of an ascending list does not exceed. */
export function quantile(ascending: readonly number[], share: number): number {
  return ascending[Math.ceil(share * ascending.length) - 1] ?? Number.NaN;
}
