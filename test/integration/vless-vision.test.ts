/** xtls-rprx-vision between our client and our server: what passes, and what an onlooker on the wire sees. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect as connectHttp2, createSecureServer } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { connect as tlsConnect } from "node:tls";
import { createHash, randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import type { RelayBackend } from "#dataplane/backend.ts";
import type { Dialer } from "#core/outbound.ts";
import { vless } from "#protocols/vless/index.ts";
import type { VisionStream } from "#protocols/vless/vision-stream.ts";
import { makeCertificate } from "../support/certificate.ts";
import { echoed, inbox, readAll } from "../support/client.ts";
import { CountingCarrier, relayPaths } from "../support/carriers.ts";
import { digestNext, exchange } from "../support/exchange.ts";
import { countThenAnswer, openTcpOrigin, openUdpEcho, untilHeldUp } from "../support/origin.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";
import { directDialer } from "../support/direct-accept.ts";
import { converse, openTap, openTlsOrigin } from "../support/vision.ts";

const certificate = makeCertificate({ names: ["server.test"] });
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const flow = "xtls-rprx-vision";

async function openVision(backend: RelayBackend | null, cut: number | null = null) {
  await using undo = new AsyncDisposableStack();
  const options = {
    certificate: certificate.cert,
    "private-key": certificate.key,
    users: [{ username: "ann", uuid, flow }],
  };
  const server = undo.use(await openServer(vless, options, undefined, backend));
  const tap = undo.use(await openTap(server.port, cut));
  const client = {
    server: "127.0.0.1",
    port: tap.port,
    uuid,
    flow,
    udp: true,
    tls: true,
    servername: "server.test",
    fingerprint: certificate.fingerprint,
  };
  const outbound = undo.use(await openClient(vless, client));
  const all = undo.move();
  return { outbound, tap, server, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** The records of a captured direction: type and length. */
function recordsOf(bytes: Buffer): { type: number; size: number }[] {
  const records: { type: number; size: number }[] = [];
  for (let at = 0; at + 5 <= bytes.length; at += 5 + bytes.readUInt16BE(at + 3)) {
    assert.ok((bytes[at] as number) >= 0x14 && (bytes[at] as number) <= 0x17, "not a record");
    records.push({ type: bytes[at] as number, size: bytes.readUInt16BE(at + 3) });
  }
  return records;
}

async function overHttp2(inner: TLSSocket): Promise<Buffer> {
  const session = connectHttp2("https://server.test", { createConnection: () => inner });
  const stream = session.request({ ":method": "POST", ":path": "/" });
  stream.end(randomBytes(100_000));
  const got = await readAll(stream);
  session.destroy();
  return got;
}

async function overHttp1(inner: TLSSocket): Promise<Buffer> {
  const sent = request({ createConnection: () => inner, method: "POST", headers: { host: "server.test" } });
  sent.end(randomBytes(100_000));
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  return await readAll(answer as unknown as Duplex);
}

// The engine's own way takes what is bare from its first byte.
const ways = (await relayPaths()).filter(({ name }) => name !== "engine");

for (const { name, backend } of ways)
  describe(`vision, relayed by the ${name} way`, () => {
    for (const cut of [null, 7, 900]) {
      const how = cut === null ? "as it comes" : `cut into ${cut} bytes`;
      test(
        `inner TLS 1.3, the wire ${how}: both directions leave the outer TLS`,
        { timeout: 60_000 },
        async () => {
          await using vision = await openVision(backend, cut);
          const stream = await converse(vision.outbound, "TLSv1.3", cut === 7 ? 100_000 : 4 << 20);
          assert.deepEqual(stream.raw, { read: true, write: true });
          // To an onlooker it is one TLS connection from its first byte to its last.
          recordsOf(vision.tap.down());
          recordsOf(vision.tap.up());
        },
      );
    }

    test("after the switch the wire holds the inner records, byte by byte", { timeout: 30_000 }, async () => {
      await using vision = await openVision(backend);
      const inner: Buffer[] = [];
      const written: Buffer[] = [];
      const tapped: Pick<Dialer, "connect"> = {
        async connect(...args) {
          const stream = await vision.outbound.connect(...args);
          const write = stream._write.bind(stream);
          stream._write = (chunk: Buffer, ...rest) => {
            written.push(Buffer.from(chunk));
            write(chunk, ...rest);
          };
          const push = stream.push.bind(stream);
          stream.push = (chunk: Buffer | null) => {
            if (chunk !== null) inner.push(Buffer.from(chunk));
            return push(chunk);
          };
          return stream;
        },
      };
      await converse(tapped, "TLSv1.3", 1 << 20);
      const plain = Buffer.concat(inner);
      const tail = plain.subarray(plain.length - 600_000);
      assert.ok(vision.tap.down().includes(tail), "the inner records are on the wire as they are");
      const sent = Buffer.concat(written);
      assert.ok(vision.tap.up().includes(sent.subarray(sent.length - 600_000)), "upwards, too");
    });

    test("inner HTTP/1.1 and HTTP/2 over TLS 1.3", { timeout: 30_000 }, async () => {
      await using vision = await openVision(backend);
      const body = randomBytes(300_000);
      const web = createSecureServer({ cert: certificate.cert, key: certificate.key, allowHTTP1: true });
      web.on("request", (request, answer) => {
        request.resume();
        request.on("end", () => answer.end(body));
      });
      web.listen(0, "127.0.0.1");
      await once(web, "listening");
      const { port } = web.address() as { port: number };
      const signal = AbortSignal.timeout(20_000);
      for (const protocol of ["http/1.1", "h2"]) {
        const to = { host: "origin.test", ip: null, port };
        const stream = (await vision.outbound.connect(to, { signal, metadata: null })) as VisionStream;
        const inner = tlsConnect({
          socket: stream,
          servername: "server.test",
          rejectUnauthorized: false,
          ALPNProtocols: [protocol],
        });
        inner.on("error", () => {});
        await once(inner, "secureConnect");
        const got = protocol === "h2" ? await overHttp2(inner) : await overHttp1(inner);
        assert.ok(got.equals(body), protocol);
        assert.deepEqual(stream.raw, { read: true, write: true });
        inner.destroy();
        stream.destroy();
      }
      web.close();
    });

    test("inner TLS 1.2 and no TLS at all stay inside", { timeout: 60_000 }, async () => {
      await using vision = await openVision(backend);
      const takenBefore = backend instanceof CountingCarrier ? backend.taken : 0;
      const stream = await converse(vision.outbound, "TLSv1.2");
      assert.deepEqual(stream.raw, { read: false, write: false });
      const plain = (await exchange(vision.outbound, 4 << 20)) as VisionStream;
      assert.deepEqual(plain.raw, { read: false, write: false });
      if (backend instanceof CountingCarrier)
        assert.equal(backend.taken - takenBefore, 2, "a worker goes on with the TLS of both");
    });

    test("half-close, empty streams, and a server that speaks first", { timeout: 30_000 }, async () => {
      await using vision = await openVision(backend);
      await using origin = await openTcpOrigin(countThenAnswer);
      const signal = AbortSignal.timeout(20_000);
      for (const size of [0, 1, 100_000]) {
        const stream = await vision.outbound.connect(origin.destination, { signal, metadata: null });
        stream.end(Buffer.alloc(size));
        assert.equal(String(await readAll(stream)), `${size}`);
        stream.destroy();
      }
      await using greeter = await openTcpOrigin((socket) => void socket.end("220 hello\r\n"));
      const silent = await vision.outbound.connect(greeter.destination, { signal, metadata: null });
      assert.equal(String(await readAll(silent)), "220 hello\r\n");
      silent.destroy();
    });

    test("half-close after the switch, both ends", { timeout: 30_000 }, async () => {
      await using vision = await openVision(backend);
      await using origin = await openTlsOrigin("TLSv1.3", (socket) => {
        let bytes = 0;
        socket.on("data", (chunk: Buffer) => (bytes += chunk.length));
        socket.on("end", () => socket.end(`${bytes}`));
      });
      const signal = AbortSignal.timeout(20_000);
      const stream = await vision.outbound.connect(origin.destination, { signal, metadata: null });
      const inner = tlsConnect({
        socket: stream as Duplex,
        servername: "server.test",
        rejectUnauthorized: false,
      });
      inner.end(Buffer.alloc(300_000));
      assert.equal(String(await readAll(inner)), "300000");
      assert.deepEqual((stream as VisionStream).raw, { read: true, write: true });
      stream.destroy();
    });

    test("a slow reader holds the sender back", { timeout: 30_000 }, async () => {
      await using vision = await openVision(backend);
      let sent = 0;
      await using origin = await openTlsOrigin("TLSv1.3", (socket) => {
        const block = Buffer.alloc(65_536);
        const more = (): void => {
          while (sent < 64 << 20) {
            sent += block.length;
            if (!socket.write(block)) return void socket.once("drain", more);
          }
        };
        more();
      });
      const signal = AbortSignal.timeout(20_000);
      const stream = await vision.outbound.connect(origin.destination, { signal, metadata: null });
      const inner = tlsConnect({ socket: stream, servername: "server.test", rejectUnauthorized: false });
      inner.on("error", () => {});
      await once(inner, "secureConnect");
      inner.pause();
      await untilHeldUp(() => sent);
      assert.ok(sent < 40 << 20, `${sent} bytes were taken from the origin`);
      stream.destroy();
    });

    test("datagrams (XUDP in padded blocks)", { timeout: 30_000 }, async () => {
      await using vision = await openVision(backend);
      await using echo = await openUdpEcho();
      const signal = AbortSignal.timeout(20_000);
      const opened = await vision.outbound.associate(echo.destination, { signal, metadata: null });
      const box = inbox(opened);
      for (let size = 1; size < 8000; size += 500) {
        opened.send({ payload: Buffer.alloc(size, 7), destination: echo.destination });
        assert.equal((await box.next()).payload.length, size);
      }
      await opened[Symbol.asyncDispose]();
    });

    test("flow policy: a request without the user's flow, and one with a flow the user lacks", async () => {
      const tls = { certificate: certificate.cert, "private-key": certificate.key };
      for (const [users, own] of [
        [[{ uuid, flow }], ""],
        [[{ uuid }], flow],
      ] as const) {
        await using server = await openServer(vless, { ...tls, users });
        await using outbound = await openClient(
          vless,
          {
            server: "127.0.0.1",
            port: server.port,
            uuid,
            flow: own,
            tls: true,
            servername: "server.test",
            fingerprint: certificate.fingerprint,
          },
          { dialer: directDialer },
        );
        const destination = { host: "origin.test", ip: null, port: 9 };
        const signal = AbortSignal.timeout(10_000);
        const stream = await outbound.connect(destination, { signal, metadata: null });
        stream.on("error", () => {}).resume();
        stream.write("x");
        await Promise.race([once(stream, "end"), once(stream, "close")]);
        stream.destroy();
        assert.equal(server.sessions.length, 0);
      }
    });

    if (backend !== null) {
      test("a download that is no TLS goes to the workers, though its client says no more", async () => {
        await using vision = await openVision(backend);
        const block = Buffer.alloc(1 << 20, "weir");
        const { promise: asked, resolve } = Promise.withResolvers<Socket>();
        await using origin = await openTcpOrigin((socket) => socket.once("data", () => resolve(socket)));
        const signal = AbortSignal.timeout(20_000);
        const takenBefore = backend.taken;
        const stream = await vision.outbound.connect(origin.destination, { signal, metadata: null });
        stream.write("all of it, please");
        const socket = await asked;
        for (let time = 0; time < 3; time++) {
          const received = digestNext(stream, block.length);
          socket.write(block);
          assert.equal(await received, createHash("sha256").update(block).digest("hex"));
        }
        assert.deepEqual((stream as VisionStream).raw, { read: false, write: false });
        assert.equal(backend.taken, takenBefore + 1);
        stream.write("and something more");
        stream.destroy();
      });

      test("a connection that has left TLS both ways goes to the workers", async () => {
        await using vision = await openVision(backend);
        await using origin = await openTlsOrigin("TLSv1.3", (socket) => void socket.pipe(socket));
        const signal = AbortSignal.timeout(20_000);
        const stream = await vision.outbound.connect(origin.destination, { signal, metadata: null });
        const inner = tlsConnect({ socket: stream, servername: "server.test", rejectUnauthorized: false });
        inner.on("error", () => {});
        await once(inner, "secureConnect");
        const takenBefore = backend.taken;
        for (let round = 0; round < 20; round++) await echoed(inner, 50_000);
        assert.deepEqual((stream as VisionStream).raw, { read: true, write: true });
        assert.equal(backend.taken, takenBefore + 1);
        inner.destroy();
        stream.destroy();
      });
    }
  });
