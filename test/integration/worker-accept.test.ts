/** Listeners whose clients are accepted by workers: clients get what the event loop would send. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import type { WorkerConnection } from "#core/accepted.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import { byWorkers } from "../support/accepted.ts";
import { readAll } from "../support/client.ts";
import { otherRequests, plainRequests, transcript, type Exchange } from "../support/exchanges.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { tlsLibrary } from "../support/tls.ts";

const skip = process.platform === "linux" ? false : "SKIP relay front: needs Linux";

const config = (relay: string, origin: number, up: number): string => `
relay: ${relay}
hosts: { origin.test: 127.0.0.1, via.test: 127.0.0.1 }
listeners:
  - { name: mixed, type: mixed, listen: 127.0.0.1, port: 0 }
  - { name: socks, type: socks, listen: 127.0.0.1, port: 0 }
  - { name: http, type: http, listen: 127.0.0.1, port: 0 }
  - { name: tunnel, type: tunnel, listen: 127.0.0.1, port: 0, network: [tcp], target: "127.0.0.1:${origin}" }
  - { name: upstream, type: socks, listen: 127.0.0.1, port: ${up} }
proxies:
  - { name: up, type: socks5, server: 127.0.0.1, port: ${up} }
rules:
  - IN-NAME,upstream,DIRECT
  - DOMAIN,via.test,up
  - DOMAIN,reject.test,REJECT
  - MATCH,DIRECT
`;

interface Both extends AsyncDisposable {
  /** What a client of each gets; ports of its own are masked. */
  ask(exchange: Exchange, cutAt?: number | null): Promise<{ byThreads: string; byLoop: string }>;
  readonly origin: number;
}

async function openBoth(): Promise<Both> {
  await using opened = new AsyncDisposableStack();
  const origin = opened.use(await openTcpOrigin(echo));
  const [one, other] = (await freePorts(2)) as [number, number];
  const threads = opened.use(await startCore(config("auto", origin.port, one)));
  const loop = opened.use(await startCore(config("portable", origin.port, other)));
  assert.match(threads.output(), /relay: \d+ worker threads/);
  const ask = async (core: Core, exchange: Exchange, cutAt: number | null): Promise<string> => {
    const port = await core.port(exchange.listener);
    const own = String.fromCharCode(port >> 8, port & 255);
    return (await transcript(port, exchange, cutAt)).replace(own, "##");
  };
  const owned = opened.move();
  return {
    origin: origin.port,
    async ask(exchange, cutAt = null) {
      const asked = [ask(threads, exchange, cutAt), ask(loop, exchange, cutAt)] as const;
      const [byThreads, byLoop] = await Promise.all(asked);
      return { byThreads, byLoop };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

test("a handshake cut at any byte, and what comes with its last byte", { skip }, async () => {
  await using both = await openBoth();
  for (const exchange of plainRequests(both.origin)) {
    const says = Buffer.concat([exchange.says, Buffer.from("ping")]);
    const { byThreads, byLoop } = await both.ask({ ...exchange, says });
    assert.equal(byThreads, byLoop, exchange.name);
    assert.match(byThreads, /ping\|$/);
    const cuts = Array.from({ length: exchange.says.length + 2 }, (_, at) => at);
    const received = await Promise.all(cuts.map((cutAt) => both.ask({ ...exchange, says }, cutAt)));
    for (const [at, one] of received.entries()) {
      assert.equal(one.byThreads, byLoop, `${exchange.name}, cut at ${at}, by threads`);
      assert.equal(one.byLoop, byLoop, `${exchange.name}, cut at ${at}, by the event loop`);
    }
  }
});

/** Whether a client that is refused by its first half, without a word, sees a reset depends on when its second half is sent. */
const withoutRace = (transcript: string): string => (transcript === "|ECONNRESET" ? "|" : transcript);

test(
  "clients that are wrong, refused, or served by the event loop get the same replies",
  { skip },
  async () => {
    await using both = await openBoth();
    const checks = otherRequests(both.origin).map(async (exchange) => {
      const { byThreads, byLoop } = await both.ask(exchange);
      assert.equal(byThreads, byLoop, exchange.name);
      const half = await both.ask(exchange, exchange.says.length >> 1);
      assert.equal(withoutRace(half.byThreads), withoutRace(half.byLoop), `${exchange.name}, in halves`);
    });
    await Promise.all(checks);
  },
);

/** Sends bytes and gets them back; throws where the connection is reset or refused. */
async function speak(port: number, to: number): Promise<void> {
  const received = await transcript(port, {
    says: Buffer.from(`CONNECT 127.0.0.1:${to} HTTP/1.1\r\n\r\nhello`),
  });
  assert.match(received, /^HTTP\/1.1 200 Connection established\r\n\r\nhello\|$/);
}

test(
  "no connection is lost while listeners move between threads, configurations and the event loop",
  { skip },
  async () => {
    await using origin = await openTcpOrigin(echo);
    const [port] = (await freePorts(1)) as [number];
    const text = (relay: string, rest = ""): string =>
      `relay: ${relay}\nlisteners:\n  - { name: in, type: mixed, listen: 127.0.0.1, port: ${port}${rest} }\nrules: ["MATCH,DIRECT"]\n`;
    await using core = await startCore(text("auto"));
    let done = 0;
    let goesOn = true;
    const client = async (): Promise<void> => {
      while (goesOn) {
        await speak(port, origin.port);
        done++;
      }
    };
    const clients = Array.from({ length: 8 }, client);
    const changes = [
      text("auto", ", udp: false"),
      text("portable", ", udp: false"),
      text("auto"),
      text("portable"),
    ];
    for (let round = 0; round < 20; round++) {
      core.write(changes[round % changes.length] as string);
      process.kill(core.pid, "SIGHUP");
      const before = done;
      while (done < before + 10 && goesOn) await Promise.race([delay(10), ...clients]);
    }
    goesOn = false;
    await Promise.all(clients);
    assert.equal(await core.stop(), 0);
  },
);

test("without descriptors it waits, and goes on when there are some", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  const prefix = ["prlimit", "--nofile=100:100"];
  await using core = await startCore(config("auto", origin.port, (await freePorts(1))[0] as number), {
    prefix,
  });
  const port = await core.port("tunnel");
  const sockets: Socket[] = [];
  for (let count = 0; count < 120; count++) {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    await new Promise((resolve) => socket.once("connect", resolve).once("close", resolve));
    sockets.push(socket);
  }
  await delay(300); // some are connected and not accepted
  for (const socket of sockets) socket.destroy();
  // A client that comes while the descriptors of the others are still being closed may get none.
  let received = "";
  for (let tries = 0; tries < 50 && received !== "again|"; tries++) {
    received = await transcript(port, { says: Buffer.from("again") });
    if (received !== "again|") await delay(100);
  }
  assert.equal(received, "again|");
  assert.equal(await core.stop(), 0);
});

test("when the threads die, the event loop accepts", { skip }, async () => {
  const workers: Worker[] = [];
  const onWorker = (worker: Worker): void => void workers.push(worker);
  process.on("worker", onWorker);
  const pool = new SocketPool();
  const { promise: died, resolve } = Promise.withResolvers<void>();
  const onDeath = (): void => {
    pool.useThreads(null);
    resolve();
  };
  await using engine = await openWorkerBackend({ tlsLibrary, threads: 1, onDeath });
  process.off("worker", onWorker);
  const { promise: asked, resolve: ask } = Promise.withResolvers<WorkerConnection>();
  const { promise: taken, resolve: take } = Promise.withResolvers<Duplex>();
  const where = { ip: LOOPBACK_V4, port: 0, owner: "test" };
  await using lease = await pool.leaseTcp(where, byWorkers(ask, take));
  pool.useThreads(engine.accepting);
  lease.activate();
  const { port } = lease.endpoint;
  const first = connect(port, "127.0.0.1");
  const held = await asked;
  assert.equal(held.source.port, first.localPort);
  const reset = once(first, "error");
  void workers[0]?.terminate(); // noticed when it wakes up, within seconds
  await died;
  assert.equal(((await reset) as [NodeJS.ErrnoException])[0].code, "ECONNRESET");
  const second = connect(port, "127.0.0.1");
  (await taken).end("by the event loop");
  assert.equal((await readAll(second)).toString(), "by the event loop");
  second.destroy();
});
