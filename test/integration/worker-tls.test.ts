/** Workers shake hands with clients of TLS listeners: what these get is what they would get of the event loop. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { after, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import * as z from "zod";
import { NO_CHALLENGES } from "#core/acme.ts";
import { openWorkerBackend, type WorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import type { SafeFiles } from "#core/files.ts";
import { SILENT } from "#core/log.ts";
import type { AcceptedConnection } from "#core/accepted.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import { tlsServerFields } from "#transport/tls/fields.ts";
import type { TlsServer } from "#core/tls.ts";
import { openTlsServer } from "#transport/tls/server.ts";
import { readTlsServer } from "#transport/tls/server-options.ts";
import { makeCertificate } from "../support/certificate.ts";
import { echoed, outcome } from "../support/client.ts";
import { freePorts } from "../support/free-ports.ts";
import { openListenerTls } from "../support/listener-tls.ts";
import { textFiles } from "../support/text-files.ts";
import { CountedContexts, openTlsListener, TLS_LISTENER, type TlsListener } from "../support/tls-listener.ts";
import { openHeldPort } from "../support/held-port.ts";
import {
  answersOf,
  answersTo,
  clientHello,
  MUCH_GARBAGE,
  nonsense,
  UnknownClient,
} from "../support/hostile-tls-clients.ts";
import { until } from "../support/until.ts";
import { WorkerKiller } from "../support/worker-killer.ts";
import { nativeTls as native } from "../support/native-tls.ts";
import { tlsLibrary } from "../support/tls.ts";

/** As listeners have it where TLS lies over TCP alone. */
const ALPN = ["h2", "http/1.1"];
const skip = native === null ? "SKIP handshakes in workers: needs Linux and node:ffi" : false;

const engines = new AsyncDisposableStack();
after(() => engines.disposeAsync());
const openThreads = async (threads: number): Promise<WorkerBackend> =>
  engines.use(await openWorkerBackend({ tlsLibrary, threads, onDeath() {} }));
const engine = native === null ? null : await openThreads(2);
const fronts = engine?.accepting ?? null;

async function secured(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const client = connectTls({
    port,
    host: LOOPBACK_V4,
    servername: "server.test",
    rejectUnauthorized: false,
    ...options,
  });
  client.on("error", () => {});
  await once(client, "secureConnect");
  return client;
}

async function speak(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const client = await secured(port, options);
  await echoed(client, 100_000);
  return client;
}

const descriptors = (): number => readdirSync("/proc/self/fd").length;

for (const version of ["TLSv1.2", "TLSv1.3"] as const)
  test(
    `${version}: the main thread gets a connection with everything that was agreed on`,
    { skip },
    async () => {
      await using listener = await openTlsListener(await openListenerTls(native, ALPN), fronts, {
        bypassable: true,
      });
      const client = await speak(listener.port, {
        ALPNProtocols: ["other", "http/1.1", "h2"],
        maxVersion: version,
      });
      const [tlsAccepted] = listener.tlsAccepted as [AcceptedConnection];
      assert.equal(tlsAccepted.tls?.isDone, true);
      assert.deepEqual(tlsAccepted.source, { ip: LOOPBACK_V4, port: client.localPort });
      assert.deepEqual(tlsAccepted.local, { ip: LOOPBACK_V4, port: listener.port });
      const [{ alpn, serverName, bypass }] = listener.accepted as [(typeof listener.accepted)[number]];
      assert.equal(client.alpnProtocol, "h2");
      assert.deepEqual([alpn, serverName, bypass !== null], ["h2", "server.test", version === "TLSv1.3"]);
      assert.equal(client.getProtocol(), version);
      const ended = once(client, "end");
      client.end();
      await ended;
    },
  );

test("unauthenticated clients get the same answer, and the log the same words", { skip }, async () => {
  await using byThreads = await openTlsListener(await openListenerTls(native, ALPN), fronts);
  await using byLoop = await openTlsListener(await openListenerTls(native, ALPN), null);
  await using byNode = await openTlsListener(await openListenerTls(null, ALPN), null);
  const listeners = [byNode, byLoop, byThreads];
  const ports = listeners.map(({ port }) => port);
  const failed = (): number[] => listeners.map(({ failures }) => failures.length);
  for (const [what, bytes] of await nonsense(await clientHello()))
    for (const ends of [false, true]) {
      const [first, ...others] = await answersTo(ports, bytes, ends);
      for (const other of others) assert.equal(other, first, `${what}${ends ? ", ended" : ""}`);
      // Silent clients have been closed by now.
      await until(`each has failed: ${what}`, () => new Set(failed()).size === 1);
      const [own, theirs] = [byLoop, byThreads].map(({ failures }) => failures.at(-1)?.message);
      assert.equal(theirs, own, what);
    }
  assert.ok(byThreads.failures.length > 20);
  assert.equal(byThreads.sockets.length, 0);
});

test("a client that sends more than is read of it gets the same answer", { skip }, async () => {
  assert.ok(native !== null);
  const { calls } = native;
  const [what, bytes] = MUCH_GARBAGE;
  for (const ends of [false, true]) {
    const hold = () => openHeldPort(calls, TLS_LISTENER);
    const [node, loop, threads] = await Promise.all([hold(), hold(), hold()]);
    const unknownClients = [node, loop, threads].map(({ port }) => new UnknownClient(port, bytes, ends));
    await until("all of it waits", () => unknownClients.every((client) => client.hasSaidAll(calls)));
    await using byNode = await openTlsListener(await openListenerTls(null, ALPN), null, { pool: node.pool });
    await using byLoop = await openTlsListener(await openListenerTls(native, ALPN), null, {
      pool: loop.pool,
    });
    await using byThreads = await openTlsListener(await openListenerTls(native, ALPN), fronts, {
      pool: threads.pool,
    });
    const [first, ...others] = await answersOf(unknownClients);
    for (const other of others) assert.equal(other, first, `${what}${ends ? ", ended" : ""}`);
    const listeners = [byNode, byLoop, byThreads];
    await until("each has failed", () => listeners.every(({ failures }) => failures.length === 1));
    assert.equal(byThreads.failures[0]?.message, byLoop.failures[0]?.message);
    assert.equal(byThreads.sockets.length, 0);
  }
});

async function tlsFor(options: object, files: SafeFiles = textFiles): Promise<TlsServer> {
  const read = readTlsServer(z.object(tlsServerFields).parse(options), "listener test", { alpn: ALPN });
  assert.ok(read !== null);
  return openTlsServer(read, { files, log: SILENT, native, challenges: NO_CHALLENGES });
}

test("every client-auth-type against no, a bad and a good certificate", { skip }, async () => {
  const authority = makeCertificate({ names: ["authority"], ca: true });
  const server = makeCertificate({ names: ["server.test"], issuer: authority });
  const clients = {
    none: {},
    bad: makeCertificate({ names: ["client"] }),
    good: makeCertificate({ names: ["client"], issuer: authority }),
  };
  const admitted = {
    "": ["none", "bad", "good"],
    request: ["none", "bad", "good"],
    "require-any": ["bad", "good"],
    "verify-if-given": ["none", "good"],
    "require-and-verify": ["good"],
  };
  for (const [type, expected] of Object.entries(admitted))
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      const tls = await tlsFor({
        certificate: server.cert,
        "private-key": server.key,
        "client-auth-type": type,
        ...(type === "" ? {} : { "client-auth-cert": authority.cert }),
      });
      await using listener = await openTlsListener(tls, fronts);
      const seen: string[] = [];
      for (const [name, { cert, key }] of Object.entries(clients) as [
        string,
        { cert?: string; key?: string },
      ][]) {
        const shown = cert === undefined || key === undefined ? {} : { cert, key };
        const before = listener.accepted.length + listener.failures.length;
        const client = await secured(listener.port, { maxVersion, ...shown });
        await until("decided", () => listener.accepted.length + listener.failures.length > before);
        if (listener.accepted.length > seen.length) seen.push(name);
        else assert.match(String(listener.failures.at(-1)?.name), /AuthError/);
        client.destroy();
      }
      assert.deepEqual(seen, expected, `client-auth-type "${type}", ${maxVersion}`);
      assert.ok(listener.tlsAccepted.every(({ tls }) => tls?.isDone === true));
    }
});

test("a ticket of one thread is good for the others, and for the event loop", { skip }, async () => {
  const other = await openThreads(1);
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    const tls = await openListenerTls(native, ALPN);
    await using first = await openTlsListener(tls, fronts);
    await using second = await openTlsListener(tls, other.accepting);
    await using loop = await openTlsListener(tls, null);
    const listeners = [first, second, loop];
    for (const from of listeners) {
      const client = connectTls({
        port: from.port,
        host: LOOPBACK_V4,
        rejectUnauthorized: false,
        maxVersion,
      });
      const ticket = once(client, "session") as Promise<[Buffer]>;
      client.write("it comes with the answer");
      const [session] = await ticket;
      assert.equal(client.isSessionReused(), false);
      client.destroy();
      for (const to of listeners) {
        const again = await speak(to.port, { session, maxVersion, servername: "" });
        assert.equal(again.isSessionReused(), true, maxVersion);
        again.destroy();
      }
    }
    assert.deepEqual(
      [first.tlsAccepted.length, second.tlsAccepted.length, loop.tlsAccepted.length],
      [4, 4, 0],
    );
  }
});

test(
  "a client that sends all and closes gets no ticket: a reset for it would cost what is on its way",
  { skip },
  async () => {
    await using byThreads = await openTlsListener(await openListenerTls(native, ALPN), fronts);
    await using byLoop = await openTlsListener(await openListenerTls(native, ALPN), null);
    for (const listener of [byThreads, byLoop]) {
      const client = await secured(listener.port);
      let tickets = 0;
      client.on("session", () => tickets++);
      await until("the listener has it", () => listener.accepted.length === 1);
      for (let turn = 0; turn < 10; turn++) await setImmediate(); // it would have been sent before
      assert.equal(tickets, 0);
      await echoed(client, 1_000);
      assert.equal(tickets, 1);
      client.destroy();
    }
  },
);

/** Files that change when the test says so. */
function changingFiles(texts: Map<string, string>): {
  files: SafeFiles;
  change(path: string, text: string): void;
} {
  const watchers = new Map<string, (text: string) => void>();
  return {
    files: {
      ...textFiles,
      readPem: async (path) => texts.get(path) as string,
      watchPem: (path, on) => {
        watchers.set(path, on);
        return { [Symbol.dispose]: () => watchers.delete(path) };
      },
    },
    change: (path, text) => watchers.get(path)?.(text),
  };
}

const fingerprintOf = (client: TLSSocket): string =>
  client.getPeerX509Certificate()?.fingerprint256.replaceAll(":", "").toLowerCase() ?? "";

test(
  "a certificate is replaced while handshakes run: clients after that get the new one",
  { skip },
  async () => {
    const both = [makeCertificate({ names: ["server.test"] }), makeCertificate({ names: ["server.test"] })];
    const [one, two] = both as [(typeof both)[number], (typeof both)[number]];
    const { files, change } = changingFiles(
      new Map([
        ["c.pem", one.cert],
        ["k.pem", one.key],
      ]),
    );
    const tls = await tlsFor({ certificate: "c.pem", "private-key": "k.pem" }, files);
    const contexts = new CountedContexts(tls.contexts);
    const listener = await openTlsListener(tls, fronts, { contexts });
    let goesOn = true;
    const known = new Set(both.map(({ fingerprint }) => fingerprint));
    const client = async (): Promise<number> => {
      let count = 0;
      for (; goesOn; count++) {
        const spoken = await speak(listener.port);
        assert.ok(known.has(fingerprintOf(spoken)));
        spoken.destroy();
      }
      return count;
    };
    const clients = Array.from({ length: 4 }, client);
    for (let round = 0; round < 12; round++) {
      const { cert, key, fingerprint } = round % 2 === 0 ? two : one;
      change("c.pem", cert);
      change("k.pem", key);
      const fresh = await speak(listener.port);
      assert.equal(fingerprintOf(fresh), fingerprint);
      fresh.destroy();
    }
    goesOn = false;
    for (const count of await Promise.all(clients)) assert.ok(count > 0);
    assert.equal(contexts.shared, 2 * 13); // one a thread
    await until("those that were replaced are released", () => contexts.released === 2 * 12);
    await listener[Symbol.asyncDispose]();
    await until("so is the last one", () => contexts.released === 2 * 13);
    tls[Symbol.dispose]();
  },
);

/** Connected, with a part of a hello said. */
async function halfway(port: number, hello: Buffer, bytes: number): Promise<Socket> {
  const client = connect({ port, host: LOOPBACK_V4 }).on("error", () => {});
  await once(client, "connect");
  if (bytes > 0) await new Promise((resolve) => void client.write(hello.subarray(0, bytes), resolve));
  return client;
}

async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await once(socket, "close");
}

/** A client of node:tls that has sent so much of its hello, and goes on when it is told to. */
async function held(port: number, bytes: number): Promise<{ client: TLSSocket; resume(): void }> {
  const socket = connect({ port, host: LOOPBACK_V4 }).on("error", () => {});
  await once(socket, "connect");
  const { promise, resolve } = Promise.withResolvers<void>();
  const write = socket.write.bind(socket);
  const rest: Buffer[] = [];
  let isHeld = true;
  const between = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      if (!isHeld) return void write(chunk, () => done());
      write(chunk.subarray(0, bytes), () => resolve());
      rest.push(chunk.subarray(bytes));
      done();
    },
  });
  socket.on("data", (chunk: Buffer) => void between.push(chunk));
  socket.on("end", () => void between.push(null));
  const client = connectTls({ socket: between, rejectUnauthorized: false });
  client.on("error", () => {});
  await promise;
  return {
    client,
    resume() {
      isHeld = false;
      write(Buffer.concat(rest));
    },
  };
}

test("a client in the middle of a handshake goes on when workers stop listening", { skip }, async () => {
  await using listener = await openTlsListener(await openListenerTls(native, ALPN), fronts);
  const clients = await Promise.all(
    Array.from({ length: 30 }, (_, at) => held(listener.port, [0, 1, 5, 200][at % 4] as number)),
  );
  await speak(listener.port); // behind them
  listener.useThreads(null);
  const moved = (): number => listener.tlsAccepted.length + listener.sockets.length;
  await until("all of them are the event loop's", () => moved() === 31);
  assert.ok(
    listener.tlsAccepted.some(({ tls }) => tls?.isDone === false),
    "some had begun",
  );
  for (const { resume } of clients) resume();
  await Promise.all(
    clients.map(async ({ client }) => {
      await once(client, "secureConnect");
      await echoed(client, 10_000);
      client.destroy();
    }),
  );
  assert.deepEqual(listener.failures, []);
  (await speak(listener.port)).destroy();
});

test("no client is lost while a port changes its listener again and again", { skip }, async () => {
  const tls = await openListenerTls(native, ALPN);
  const pool = new SocketPool();
  const [port] = (await freePorts(1)) as [number];
  let listener = await openTlsListener(tls, fronts, { pool, port });
  let goesOn = true;
  const client = async (): Promise<number> => {
    let count = 0;
    for (; goesOn; count++) (await speak(port)).destroy();
    return count;
  };
  const clients = Array.from({ length: 6 }, client);
  for (let round = 0; round < 30; round++) {
    const before = listener;
    const threads = round % 3 === 2 ? null : fronts;
    listener = await openTlsListener(tls, threads, { pool, port });
    await before.release();
    const from = listener.accepted.length;
    await until("a client came", () => listener.accepted.length > from, { everyMs: 2 });
    assert.deepEqual(before.failures, []);
  }
  goesOn = false;
  for (const count of await Promise.all(clients)) assert.ok(count > 0);
  await listener[Symbol.asyncDispose]();
});

test(
  "when threads die in the middle of handshakes, their clients are cut off and others come",
  { skip },
  async () => {
    using killer = new WorkerKiller();
    const before = descriptors();
    const pool = new SocketPool();
    const onDeath = (_: string, left: number): void => void (left === 0 && pool.useThreads(null));
    await using mortal = await openWorkerBackend({ tlsLibrary, threads: 2, onDeath });
    const tls = await openListenerTls(native, ALPN);
    const contexts = new CountedContexts(tls.contexts);
    {
      await using listener = await openTlsListener(tls, mortal.accepting, { contexts, pool });
      const hello = await clientHello();
      const clients = await Promise.all(
        Array.from({ length: 40 }, (_, at) => halfway(listener.port, hello, at % 2 === 0 ? 0 : 100)),
      );
      const goes = await speak(listener.port);
      const ends = clients.map((client) => outcome(client.resume()));
      const dead = killer.kill("relay");
      const speaks = Array.from({ length: 8 }, async () => (await speak(listener.port)).destroy());
      await dead;
      await Promise.all(ends);
      await Promise.allSettled(speaks); // those that a worker had were cut off, too
      assert.equal(mortal.threads, 0);
      assert.ok(contexts.shared > 0);
      await until("no context is left to threads", () => contexts.released === contexts.shared);
      await echoed(goes, 1_000); // the event loop had it
      goes.destroy();
      (await speak(listener.port)).destroy();
    }
    await mortal[Symbol.asyncDispose]();
    await until(
      () => `${before} descriptors have become ${descriptors()}`,
      () => descriptors() <= before,
    );
  },
);

test("two thousand clients that only connect keep no other out, and leave nothing", { skip }, async () => {
  await using listener = await openTlsListener(await openListenerTls(native, ALPN), fronts);
  (await speak(listener.port)).destroy();
  const before = descriptors();
  const clients: Socket[] = [];
  while (clients.length < 2_000)
    clients.push(
      ...(await Promise.all(Array.from({ length: 100 }, () => halfway(listener.port, Buffer.alloc(0), 0)))),
    );
  (await speak(listener.port)).destroy();
  const failed = listener.failures.length;
  for (const [at, client] of clients.entries())
    if (at % 2 === 0) client.destroy();
    else client.resetAndDestroy();
  await until("each has failed", () => listener.failures.length === failed + 2_000);
  assert.equal(new Set(listener.failures.map(({ message }) => message)).size, 1);
  await until(
    () => `${before} descriptors have become ${descriptors()}`,
    () => descriptors() <= before + 4,
  );
});

test("a thousand handshakes that are never finished leave nothing", { skip }, async () => {
  await using listener = await openTlsListener(await openListenerTls(native, ALPN), fronts);
  const hello = await clientHello();
  const round = async (count: number): Promise<void> => {
    const target = listener.failures.length + count;
    for (let left = count; left > 0; left -= 50) {
      const clients = await Promise.all(
        Array.from({ length: 50 }, () => halfway(listener.port, hello, hello.length)),
      );
      for (const [at, client] of clients.entries())
        if (at % 2 === 0) client.resetAndDestroy();
        else client.once("data", () => client.destroy());
      await Promise.all(clients.map(closed));
    }
    await until("each has failed", () => listener.failures.length >= target);
  };
  await round(200); // what is made once, and what the allocator keeps
  const [fds, kept] = [descriptors(), process.memoryUsage().rss];
  await round(1_000);
  assert.ok(descriptors() <= fds + 4, `${fds} descriptors have become ${descriptors()}`);
  const grownMiB = (process.memoryUsage().rss - kept) / 2 ** 20;
  assert.ok(grownMiB < 48, `${grownMiB} MiB more`); // one SSL object that stays a handshake would be 60 and more
  (await speak(listener.port)).destroy();
});

test(
  "without a choice of protocols it is the same; by node:tls the event loop accepts",
  { skip },
  async () => {
    const whose = async (tls: TlsServer): Promise<readonly number[]> => {
      await using listener: TlsListener = await openTlsListener(tls, fronts);
      (await speak(listener.port)).destroy();
      return [listener.tlsAccepted.length, listener.sockets.length];
    };
    assert.deepEqual(await whose(await openListenerTls(native)), [1, 0]);
    assert.deepEqual(await whose(await openListenerTls(null)), [0, 1]);
  },
);
