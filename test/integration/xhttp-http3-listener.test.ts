/** XHTTP over HTTP/3 as a listener, with our own nodes and with aioquic. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { describe, test } from "node:test";
import { ConfigError } from "#core/errors.ts";
import type { Accept, ManagedInbound } from "#core/inbound.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Session } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { vless } from "#protocols/vless/index.ts";
import { COMMAND_TCP, encodeRequest } from "#protocols/vless/wire.ts";
import { openTestInbound, openTestOutbound } from "../support/inbound-env.ts";
import { ask, visit } from "../support/hysteria2-listener.ts";
import { aioquicAbsent, askHttpByAioquic } from "../support/interop/aioquic.ts";
import { quicCertificate } from "../support/quic-tls.ts";
import { literalsOnly } from "../support/resolvers.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const UUID = "0123e456-89ab-4cde-8f01-23456789abcd";
const ID = Buffer.from(UUID.replaceAll("-", ""), "hex");
const TO = toDestination("origin.test", 80);
const REFERER = `https://server.test/x/?x_padding=${"X".repeat(100)}`;
const context = () => ({ signal: AbortSignal.timeout(20_000), metadata: null });

/** Sends back what comes, and its end. */
function echo(session: Session): void {
  assert.ok(session.network === "tcp");
  session.reply(null);
  session.stream.pipe(session.stream);
}

const openListener = (accept: Accept, options: object = {}) =>
  openTestInbound(
    vless,
    {
      users: [{ username: "ada", uuid: UUID }],
      certificate: quicCertificate.cert,
      "private-key": quicCertificate.key,
      "xhttp-config": { path: "/x" },
      alpn: ["h3"],
      ...options,
    },
    { accept },
  );

const openNode = (port: number, mode: string, options: object = {}): Promise<Outbound> =>
  openTestOutbound(
    vless,
    {
      server: "127.0.0.1",
      port,
      uuid: UUID,
      tls: true,
      servername: "server.test",
      fingerprint: quicCertificate.fingerprint,
      network: "xhttp",
      alpn: ["h3"],
      "xhttp-opts": { path: "/x", mode },
      ...options,
    },
    openDirectDialer({ resolver: literalsOnly }),
  );

/** Writes all, and reads as much. */
async function there(stream: Duplex, bytes: Buffer): Promise<Buffer> {
  stream.write(bytes);
  const pieces: Buffer[] = [];
  let count = 0;
  for await (const piece of stream) {
    pieces.push(piece as Buffer);
    if ((count += (piece as Buffer).length) >= bytes.length) break;
  }
  return Buffer.concat(pieces);
}

describe("XHTTP over HTTP/3 as a listener", { skip: SKIP }, () => {
  for (const mode of ["stream-one", "stream-up", "packet-up"])
    test(`${mode}: bytes of many connections in both directions, with what rules read`, async () => {
      const sessions: Session[] = [];
      await using listener = await openListener((session) => {
        sessions.push(session);
        echo(session);
      });
      await using node = await openNode(listener.port, mode);
      const sent = Array.from({ length: 8 }, () => randomBytes(300_000));
      const back = await Promise.all(
        sent.map(async (bytes) => there(await node.connect(TO, context()), bytes)),
      );
      for (const [index, bytes] of sent.entries()) assert.ok(back[index]?.equals(bytes));
      const [session] = sessions;
      assert.ok(session !== undefined);
      const { inbound, destination, source } = session.metadata;
      assert.deepEqual([inbound.user, inbound.type, inbound.isRemote], ["ada", "Vless", true]);
      assert.deepEqual([destination, source.ip], [TO, "127.0.0.1"]);
    });

  test("stream-one: what comes behind the far side's end is read all the same", async () => {
    let got = 0;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    await using listener = await openListener((session) => {
      assert.ok(session.network === "tcp");
      session.reply(null);
      session.stream.end("all said");
      session.stream.on("data", (bytes: Buffer) => (got += bytes.length));
      session.stream.on("end", resolve);
    });
    await using node = await openNode(listener.port, "stream-one");
    const stream = await node.connect(TO, context());
    stream.write("first");
    const pieces: Buffer[] = [];
    for await (const piece of stream.iterator({ destroyOnReturn: false })) pieces.push(piece as Buffer);
    assert.equal(Buffer.concat(pieces).toString(), "all said");
    stream.end(Buffer.alloc(200_000));
    await over;
    assert.equal(got, 200_005);
  });

  test("beside HTTP/2 over TCP, where alpn has both", async () => {
    await using listener = await openListener(echo, { alpn: ["h3", "h2"] });
    const [tcp, udp] = listener.inbound.endpoints;
    assert.ok(tcp !== undefined && udp !== undefined);
    await using overTcp = await openNode(tcp.port, "packet-up", { alpn: ["h2"] });
    await using overUdp = await openNode(udp.port, "packet-up");
    for (const node of [overTcp, overUdp]) {
      const bytes = randomBytes(100_000);
      assert.ok((await there(await node.connect(TO, context()), bytes)).equals(bytes));
    }
  });

  test("what is not below the path is not there, and a removed user's connections end", async () => {
    await using listener = await openListener(echo);
    const visitor = await visit(listener.port);
    assert.deepEqual((await ask(visitor, "/")).fields[0], [":status", "404"]);
    assert.deepEqual((await ask(visitor, "/x/s1")).fields[0], [":status", "400"]);
    visitor.close(0x100);
    await using node = await openNode(listener.port, "stream-up");
    const stream = await node.connect(TO, context());
    assert.equal(String(await firstBack(stream, "here")), "here");
    let isOver = false;
    stream.on("error", () => {}).on("close", () => (isOver = true));
    (listener.inbound as ManagedInbound).replaceUsers([]);
    await until("the connection has ended", () => isOver);
  });

  test("an unknown user's tunnel is closed", async () => {
    await using listener = await openListener(() => assert.fail("no user is let in"));
    await using node = await openNode(listener.port, "stream-one", { uuid: UUID.replace("0", "1") });
    const stream = await node.connect(TO, context());
    stream.on("error", () => {});
    const closed = new Promise((resolve) => stream.once("close", resolve));
    stream.write("hello");
    stream.resume();
    await closed;
  });

  test("clients without credentials are as many as their open requests allow", async () => {
    await using listener = await openListener(echo);
    let closed = 0;
    const visitors = await Promise.all(Array.from({ length: 4 }, () => visit(listener.port)));
    for (const [nth, visitor] of visitors.entries()) {
      void visitor.closed.then(() => closed++);
      for (let at = 0; at < 150; at++)
        ask(visitor, `/x/v${nth}s${at}`, { fields: [["referer", REFERER]] }).catch(() => {});
    }
    await until("two of four have given way", () => closed >= 2); // 150 requests of 80 KiB each
    await using node = await openNode(listener.port, "packet-up");
    const stream = (await node.connect(TO, context())).on("error", () => {});
    assert.equal(String(await firstBack(stream, "here")), "here");
    stream.destroy();
    for (const visitor of visitors) visitor.close(0x100);
  });

  test("keys that do not go together are named", async () => {
    const { cert, key } = quicCertificate;
    const tls = { certificate: cert, "private-key": key };
    const open = (options: object) => openListener(echo, options);
    const rejects = (options: object, words: RegExp) =>
      assert.rejects(open(options), (error) => error instanceof ConfigError && words.test(error.message));
    await rejects({ "xhttp-config": undefined }, /alpn: h3 carries nothing but XHTTP/);
    await rejects({ certificate: "", "private-key": "" }, /QUIC needs certificate and private-key/);
    await rejects(
      { ...tls, alpn: ["http/1.1"], "xhttp-config": undefined, "grpc-service-name": "x" },
      /alpn: /,
    );
  });

  test("aioquic: a request of stream-one", { skip: aioquicAbsent() }, async () => {
    await using listener = await openListener(echo);
    const payload = randomBytes(500_000);
    const head = encodeRequest(ID, { flow: "", command: COMMAND_TCP, destination: TO });
    const { status, body } = await askHttpByAioquic(listener.port, "/x/", {
      fields: { referer: REFERER },
      body: Buffer.concat([head, payload]),
    });
    assert.equal(status, "200");
    assert.ok(body.subarray(2).equals(payload)); // behind the version, and no addons
  });
});

/** The first piece that comes back. */
async function firstBack(stream: Duplex, text: string): Promise<Buffer> {
  stream.write(text);
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  stream.once("data", resolve);
  return promise;
}
