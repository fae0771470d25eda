/** Our client against our server, and what a server shows to peers that are none of ours. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import type { ManagedInbound } from "#core/inbound.ts";
import { shadowsocks, ss } from "#protocols/shadowsocks/index.ts";
import { masterKey, methodOf } from "#protocols/shadowsocks/methods.ts";
import { openPacket004 } from "#protocols/shadowsocks/packet004.ts";
import { outboundContract } from "../contract/outbound.ts";
import { outcome, readAll } from "../support/client.ts";
import { countThenAnswer, echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openClient, openPair, openServer } from "../support/protocol-pair.ts";

const key = (fill: number, size = 16) => Buffer.alloc(size, fill).toString("base64");
const context = () => ({ signal: new AbortController().signal, metadata: null });

const PASSWORDS: Readonly<Record<string, string>> = {
  none: "",
  "aes-256-cfb": "secret",
  "aes-128-ctr": "secret",
  "rc4-md5": "secret",
  chacha20: "secret",
  "chacha20-ietf": "secret",
  xchacha20: "secret",
  "aes-128-gcm": "secret",
  "chacha20-ietf-poly1305": "secret",
  "2022-blake3-aes-128-gcm": key(1),
  "2022-blake3-chacha20-poly1305": key(1, 32),
};
const ADDRESS_TYPES = [1, 3, 4];

/** Random bytes that are no request. A cipher without authentication opens any to some, and they may begin like an address. */
function noRequest(cipher: string, password: string): Buffer {
  const method = methodOf(cipher);
  const bytes = randomBytes(100);
  if (method.stream === undefined) return bytes;
  const [type] = openPacket004(method, masterKey(method, password), bytes) as Buffer;
  return ADDRESS_TYPES.includes(type as number) ? noRequest(cipher, password) : bytes;
}

for (const [cipher, password] of Object.entries(PASSWORDS))
  outboundContract(
    `ss ${cipher}`,
    () => openPair(shadowsocks, { cipher, password }, ss, { cipher, password, udp: true }),
    {
      udp: true,
    },
  );
for (const version of [1, 2])
  outboundContract(
    `ss udp-over-tcp ${version}`,
    () =>
      openPair(shadowsocks, { cipher: "aes-128-gcm", password: "x", udp: false }, ss, {
        cipher: "aes-128-gcm",
        password: "x",
        udp: true,
        "udp-over-tcp": true,
        "udp-over-tcp-version": version,
      }),
    { udp: true },
  );

describe("shadowsocks", () => {
  test("16 MiB both ways with their checksums", async () => {
    for (const cipher of ["aes-256-gcm", "rc4-md5", "xchacha20-ietf-poly1305", "2022-blake3-aes-256-gcm"]) {
      const password = cipher.startsWith("2022") ? key(3, 32) : "pw";
      await using pair = await openPair(shadowsocks, { cipher, password }, ss, {
        cipher,
        password,
        udp: true,
      });
      await using origin = await openTcpOrigin(echo);
      const stream = await pair.outbound.connect(origin.destination, context());
      const sent = randomBytes(16 << 20);
      stream.end(sent);
      assert.ok((await readAll(stream)).equals(sent), cipher);
      stream.destroy();
    }
  });

  test("users: known by key, named in metadata, cut off when taken away, others untouched", async () => {
    const users = { ada: key(2), bob: key(3) };
    const cipher = "2022-blake3-aes-128-gcm";
    await using server = await openServer(shadowsocks, { cipher, password: key(1), users });
    await using origin = await openTcpOrigin(echo);
    await using udpOrigin = await openUdpEcho();
    const node = { server: "127.0.0.1", port: server.port, cipher };
    const say = async (userKey: string) => {
      await using outbound = await openClient(ss, { ...node, udp: true, password: `${key(1)}:${userKey}` });
      const stream = await outbound.connect(origin.destination, context());
      stream.write("hello");
      const [reply] = (await once(stream, "data")) as [Buffer];
      assert.equal(reply.toString(), "hello");
      const flow = await outbound.associate(udpOrigin.destination, context());
      const got = new Promise((resolve) => flow.receive(resolve));
      flow.send({ payload: Buffer.from("x"), destination: udpOrigin.destination });
      await got;
      await flow[Symbol.asyncDispose]();
      return stream;
    };
    const ada = await say(users.ada);
    const bob = await say(users.bob);
    assert.deepEqual(
      server.sessions.map(({ inbound, network }) => `${inbound.user} ${network}`),
      ["ada tcp", "ada udp", "bob tcp", "bob udp"],
    );
    const adaGone = outcome(ada);
    ada.once("end", () => ada.destroy());
    const managed = server.inbound as ManagedInbound;
    managed.replaceUsers([{ id: "bob", credential: users.bob, flow: null }]);
    await adaGone;
    bob.write("still");
    assert.equal(String(((await once(bob, "data")) as [Buffer])[0]), "still");
    assert.throws(() => managed.replaceUsers([{ id: "x", credential: "short", flow: null }]), {
      name: "ConfigError",
    });
    bob.destroy();
  });

  test("an unauthenticated client gets no byte and is not cut off, whatever it sends", async () => {
    for (const [cipher, password] of Object.entries(PASSWORDS)) {
      if (cipher === "none") continue;
      await using server = await openServer(shadowsocks, { cipher, password, udp: true });
      const probe = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
      probe.on("data", () => assert.fail(`${cipher} answered an unauthenticated client`));
      let closed = false;
      probe.on("close", () => (closed = true)).on("end", () => (closed = true));
      await once(probe, "connect");
      for (let round = 0; round < 20; round++) {
        probe.write(round === 0 ? noRequest(cipher, password) : randomBytes(100));
        await new Promise((resolve) => setImmediate(resolve));
      }
      assert.equal(closed, false);
      const ended = once(probe, "end"); // when the client ends, the server ends in an orderly way
      probe.end();
      await ended;
      assert.equal(server.sessions.length, 0);
    }
  });

  test("a recorded connection cannot be played again", async () => {
    for (const cipher of ["aes-128-gcm", "2022-blake3-aes-128-gcm"]) {
      const password = PASSWORDS[cipher] as string;
      await using server = await openServer(shadowsocks, { cipher, password, udp: true });
      await using origin = await openTcpOrigin(countThenAnswer);
      let recorded = Buffer.alloc(0);
      await using tap = await openTcpOrigin((socket) => {
        const onward = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
        socket.on("data", (bytes: Buffer) => (recorded = Buffer.concat([recorded, bytes])));
        socket.pipe(onward).pipe(socket);
      });
      await using outbound = await openClient(ss, { server: "127.0.0.1", port: tap.port, cipher, password });
      const stream = await outbound.connect(origin.destination, context());
      stream.end("12345");
      assert.equal((await readAll(stream)).toString(), "5");
      stream.destroy();
      const again = connect({ port: server.port, host: "127.0.0.1" });
      again.end(recorded);
      assert.equal((await readAll(again)).length, 0);
      assert.equal(server.sessions.length, 1);
    }
  });

  test("without a client's byte the target is still dialled, for servers that speak first", async () => {
    const cipher = "2022-blake3-aes-128-gcm";
    const password = key(1);
    await using pair = await openPair(shadowsocks, { cipher, password }, ss, { cipher, password, udp: true });
    await using origin = await openTcpOrigin((socket) => socket.end("220 ready"));
    const stream = await pair.outbound.connect(origin.destination, context());
    assert.equal((await readAll(stream)).toString(), "220 ready");
    stream.destroy();
  });
});
