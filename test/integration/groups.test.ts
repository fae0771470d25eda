/** Groups over real nodes that are slowed, stopped and revived (configuration.md §12.2). */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";
import { openWebOrigin } from "../support/web-origin.ts";

/** An HTTP proxy on a fixed port that can be slowed, stopped and started again. */
class Node {
  delayMs = 0;
  served = 0;
  readonly port: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;

  constructor(port: number) {
    this.port = port;
  }

  async start(): Promise<void> {
    const server = createServer((_, response) => response.writeHead(405).end());
    server.on("connect", (request, client: Socket) => void this.#tunnel(request.url ?? "", client));
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.listen(this.port, "127.0.0.1");
    await once(server, "listening");
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(server, "close");
  }

  async #tunnel(target: string, client: Socket): Promise<void> {
    await delay(this.delayMs);
    this.served++;
    const [host, port] = target.split(":");
    const remote = connect(Number(port), host, () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      client.pipe(remote).pipe(client);
    });
    remote.on("error", () => client.destroy());
    client.once("close", () => remote.destroy());
  }
}

interface World extends AsyncDisposable {
  readonly a: Node;
  readonly b: Node;
  now(group: string): Promise<string>;
  /** Waits until the group picks the node. */
  settles(group: string, node: string): Promise<void>;
  /** A request through the mixed port; answers with the status. */
  ask(): Promise<number>;
}

async function openWorld(groups: string): Promise<World> {
  const [mixed, controller, first, second] = (await freePorts(4)) as [number, number, number, number];
  const origin = await openWebOrigin((_, response) => void response.writeHead(204).end());
  const [a, b] = [new Node(first), new Node(second)];
  await Promise.all([a.start(), b.start()]);
  const core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
proxies:
  - { name: a, type: http, server: 127.0.0.1, port: ${first} }
  - { name: b, type: http, server: 127.0.0.1, port: ${second} }
proxy-groups:
${groups.replaceAll("ORIGIN", `${origin.url}/`)}
rules: ["MATCH,G"]
`);
  const now = async (group: string): Promise<string> => {
    const view = await (await fetch(`http://127.0.0.1:${controller}/proxies/${group}`)).json();
    return (view as { now: string }).now;
  };
  return {
    a,
    b,
    now,
    async settles(group, node) {
      await until(`${group} picks ${node}`, async () => (await now(group)) === node, {
        everyMs: 100,
        withinMs: 40_000,
      });
    },
    async ask() {
      const socket = connect(mixed, "127.0.0.1");
      socket.write(`GET ${origin.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      const [head] = (await once(socket, "data")) as [Buffer];
      socket.destroy();
      return Number(head.toString("latin1").split(" ")[1]);
    },
    async [Symbol.asyncDispose]() {
      await core[Symbol.asyncDispose]();
      await Promise.all([a.stop(), b.stop()]);
      await origin[Symbol.asyncDispose]();
    },
  };
}

test("configuration.md §12.2 url-test leaves a slowed node, a stopped one at once, and comes back", async () => {
  await using world = await openWorld(
    "  - { name: G, type: url-test, proxies: [a, b], url: ORIGIN, interval: 1, lazy: false, tolerance: 50 }",
  );
  world.b.delayMs = 150;
  await world.settles("G", "a");
  world.a.delayMs = 600;
  await world.settles("G", "b");
  await world.b.stop();
  await world.settles("G", "a");
  assert.equal(await world.ask(), 204);
  await world.b.start();
  await world.settles("G", "b");
});

test("configuration.md §12.2 fallback takes the first that is alive and returns to it", async () => {
  await using world = await openWorld(
    "  - { name: G, type: fallback, proxies: [a, b], url: ORIGIN, interval: 1, lazy: false }",
  );
  await world.settles("G", "a");
  await world.a.stop();
  await world.settles("G", "b");
  const before = world.b.served;
  assert.equal(await world.ask(), 204);
  assert.ok(world.b.served > before);
  await world.a.start();
  await world.settles("G", "a");
});

test("configuration.md §12.2 an unused lazy group sends no probe; a refused dial tests at once", async () => {
  await using world = await openWorld(
    "  - { name: G, type: fallback, proxies: [a, b], url: ORIGIN, interval: 1, lazy: true }",
  );
  await delay(2500);
  assert.deepEqual([world.a.served, world.b.served], [0, 0]);
  await world.a.stop();
  await world.ask();
  await world.settles("G", "b");
  assert.equal(await world.ask(), 204);
});
