/** What hostile clients do to a TLS listener: the same answers by node:tls and by the library itself, and nothing is left of them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { after, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import fc from "fast-check";
import type { TlsServer } from "#core/tls.ts";
import { echoed } from "../support/client.ts";
import { openListenerTls } from "../support/listener-tls.ts";
import { assertHeardAll, opensslClient, updateKeys } from "../support/openssl-client.ts";
import { missing } from "../support/peer.ts";
import { answersTo, clientHello, MUCH_GARBAGE, nonsense } from "../support/hostile-tls-clients.ts";
import { until } from "../support/until.ts";
import { nativeTls as native } from "../support/native-tls.ts";

const skip = native === null ? "SKIP native TLS: needs Linux and node:ffi" : false;

interface Listener {
  readonly port: number;
  readonly accepted: Socket[];
  readonly failures: Error[];
  readonly streams: Duplex[];
}

/** Echoes what a client says. */
async function listen(tls: TlsServer, bypassable = false): Promise<Listener> {
  const accepted: Socket[] = [];
  const failures: Error[] = [];
  const streams: Duplex[] = [];
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on("error", () => {});
    accepted.push(socket);
    tls.accept(socket, { bypassable }).then(
      ({ stream }) => {
        streams.push(stream);
        stream.on("error", () => stream.destroy());
        stream.pipe(stream);
      },
      (error: Error) => void failures.push(error),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => server.close());
  return { port: (server.address() as AddressInfo).port, accepted, failures, streams };
}

const ALPN = ["http/1.1"];
const byNode = await listen(await openListenerTls(null, ALPN));
const tls = native === null ? null : await openListenerTls(native, ALPN);
const byLibrary = tls === null ? null : await listen(tls);
/** Nothing is read beyond a record. */
const byRecords = tls === null ? null : await listen(tls, true);

const hello = await clientHello();

test("what is no handshake gets the same answer both ways", { skip }, async () => {
  const ports = [byNode, byLibrary, byRecords].map((listener) => (listener as Listener).port);
  for (const [what, bytes] of [...(await nonsense(hello)), MUCH_GARBAGE])
    for (const ends of [false, true]) {
      const [first, ...others] = await answersTo(ports, bytes, ends);
      for (const other of others) assert.equal(other, first, `${what}${ends ? ", ended" : ""}`);
    }
});

test("any cut of a hello, and any bytes, cost only themselves", { skip }, async () => {
  const { port, failures } = byLibrary as Listener;
  const before = failures.length;
  const bytes = fc.oneof(
    fc.integer({ min: 0, max: hello.length - 1 }).map((size) => hello.subarray(0, size)),
    fc
      .tuple(fc.integer({ min: 0, max: hello.length - 1 }), fc.integer({ min: 0, max: 255 }))
      .map(([at, value]) => {
        const changed = Buffer.from(hello);
        changed[at] = value;
        return changed;
      }),
    fc.uint8Array({ minLength: 1, maxLength: 600 }).map((array) => Buffer.from(array)),
  );
  await fc.assert(
    fc.asyncProperty(bytes, fc.boolean(), async (sent, resets) => {
      const socket = connect({ port, host: "127.0.0.1" });
      socket.on("error", () => {});
      await once(socket, "connect");
      socket.write(sent);
      if (resets) socket.resetAndDestroy();
      else socket.end();
      socket.resume();
      await closed(socket);
    }),
    { numRuns: 200 },
  );
  await until("each has failed", () => failures.length >= before + 200);
  await speak(port);
});

/** A good client still gets what it asks for. */
async function speak(port: number): Promise<void> {
  const client = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
  client.on("error", () => {});
  await once(client, "secureConnect");
  await echoed(client, 1_000);
  client.destroy();
}

async function closed(stream: Duplex): Promise<void> {
  if (!stream.closed) await new Promise((resolve) => stream.once("close", resolve));
}

const descriptors = (): number => readdirSync("/proc/self/fd").length;

test("a thousand handshakes that are never finished leave nothing", { skip }, async () => {
  const { port, failures, accepted } = byLibrary as Listener;
  const round = async (count: number): Promise<void> => {
    const target = failures.length + count;
    for (let left = count; left > 0; left -= 50) {
      const clients = Array.from({ length: 50 }, () =>
        connect({ port, host: "127.0.0.1" }).on("error", () => {}),
      );
      await Promise.all(clients.map((client) => once(client, "connect")));
      for (const [index, client] of clients.entries()) {
        client.write(hello);
        if (index % 2 === 0) client.resetAndDestroy();
        else client.once("data", () => client.destroy());
      }
      await Promise.all(clients.map((client) => closed(client)));
    }
    await until("each has failed", () => failures.length >= target);
    await Promise.all(accepted.splice(0).map((socket) => closed(socket)));
  };
  await round(200); // what is made once, and what the allocator keeps
  const [fds, kept] = [descriptors(), process.memoryUsage().rss];
  await round(1_000);
  assert.ok(descriptors() <= fds + 4, `${fds} descriptors have become ${descriptors()}`);
  const grownMiB = (process.memoryUsage().rss - kept) / 2 ** 20;
  assert.ok(grownMiB < 48, `${grownMiB} MiB more`); // one SSL object that stays a handshake would be 60 and more
  await speak(port);
});

test("an early close, an end without close_notify and a reset end one stream each", { skip }, async () => {
  const { port, streams } = byLibrary as Listener;
  for (const leave of [
    (socket: Socket) => socket.destroy(),
    (socket: Socket) => socket.end(),
    (socket: Socket) => socket.resetAndDestroy(),
  ]) {
    const socket = connect({ port, host: "127.0.0.1" });
    const client = connectTls({ socket, rejectUnauthorized: false });
    client.on("error", () => {});
    await once(client, "secureConnect");
    client.write("x");
    await once(client, "data");
    const stream = streams.at(-1) as Duplex;
    leave(socket);
    await closed(stream);
    client.destroy();
  }
});

test("a silent client is closed after thirty seconds", { skip }, async (context) => {
  const { port, failures } = byLibrary as Listener;
  const [before, accepted] = [failures.length, (byLibrary as Listener).accepted.length];
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => {}).resume();
  await once(socket, "connect");
  socket.write(hello.subarray(0, 50));
  while ((byLibrary as Listener).accepted.length === accepted) await turn();
  context.mock.timers.tick(29_999);
  await turn();
  assert.equal(failures.length, before);
  context.mock.timers.tick(1);
  await closed(socket);
  assert.match(String(failures.at(-1)), /no TLS handshake within 30 s/);
});

test("a client that wants to negotiate anew is refused", { skip }, async () => {
  const { port } = byLibrary as Listener;
  const client = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false, maxVersion: "TLSv1.2" });
  await once(client, "secureConnect");
  const refused = new Promise((resolve) => client.once("error", resolve).once("close", resolve));
  client.renegotiate({}, () => {});
  await refused;
  client.destroy();
  await speak(port);
});

const noOpenssl = skip || missing("openssl");

for (const version of ["-tls1_2", "-tls1_3"])
  test(`openssl s_client ${version}: talks, and resumes with a ticket`, { skip: noOpenssl }, async () => {
    const { port } = byLibrary as Listener;
    const folder = mkdtempSync(join(tmpdir(), "weir-tls-"));
    const session = join(folder, "session");
    after(() => rmSync(folder, { recursive: true }));
    const first = await opensslClient(port, [version, "-sess_out", session, "-servername", "server.test"]);
    assert.match(first, /New, TLSv1/);
    assertHeardAll(first);
    const second = await opensslClient(port, [version, "-sess_in", session, "-servername", "server.test"]);
    assert.match(second, /Reused, TLSv1/);
    assertHeardAll(second);
  });

test(
  "openssl s_client: keys are updated, by one side and by both, again and again",
  { skip: noOpenssl },
  async () => {
    const { port } = byLibrary as Listener;
    assert.match(await updateKeys(port, 60), /KEYUPDATE/);
  },
);
