import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/**
 * Below those that systems give to sockets bound to port 0: between two listeners of a test, or before the first, no
 * connection of another program comes by such a port.
 */
const FIRST_PORT = 10_000;
const PORTS = 10_000;

/** Ports without a listener now; tests that need a number before the program starts take them here. */
export async function freePorts(count: number): Promise<number[]> {
  const held = new Map<number, Server>();
  while (held.size < count) {
    const port = FIRST_PORT + randomInt(PORTS);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (isFree) held.set(port, server);
  }
  await Promise.all([...held.values()].map((server) => new Promise((done) => server.close(done))));
  return [...held.keys()];
}
