/** The SOCKS and tunnel listeners byte by byte, and UDP through both. */
import assert from "node:assert/strict";
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { DialError } from "#core/errors.ts";
import type { Accept } from "#core/inbound.ts";
import type { DatagramSession, Ip } from "#core/session.ts";
import { mixed } from "#protocols/mixed/index.ts";
import { socks } from "#protocols/socks/index.ts";
import { tunnel } from "#protocols/tunnel/index.ts";
import { directAccept } from "../support/direct-accept.ts";
import { openTestInbound } from "../support/inbound-env.ts";
import { countThenAnswer, echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openRawClient, say, type RawClient } from "../support/raw-client.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const portHex = (port: number) => port.toString(16).padStart(4, "0");
const latin1 = (text: string) => Buffer.from(text, "latin1").toString("hex");

test("SOCKS5: everything in one segment, data behind it, half-close", async () => {
  await using origin = await openTcpOrigin(countThenAnswer);
  await using proxy = await openTestInbound(socks, {}, { accept: directAccept().accept });
  using client = await openRawClient(proxy.port);
  client.socket.end(hex(`05 01 00 05 01 00 01 7f000001 ${portHex(origin.port)} 616263`));
  const local = `7f000001 ${portHex(proxy.port)}`;
  assert.deepEqual(await client.read(12), hex(`05 00 05 00 00 01 ${local}`));
  assert.equal(String(await client.rest()), "3");
});

test("SOCKS5 and SOCKS4a byte by byte, through mixed", async () => {
  await using origin = await openTcpOrigin(echo);
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(mixed, {}, { accept });
  const name = "0b 6f726967696e2e74657374";
  for (const [bytes, answer] of [
    [`05 01 00 05 01 00 03 ${name} ${portHex(origin.port)} 616263`, 12],
    [`04 01 ${portHex(origin.port)} 00000001 626f62 00 6f726967696e2e74657374 00 616263`, 8],
  ] as const) {
    using client = await openRawClient(proxy.port);
    for (const byte of hex(bytes)) {
      client.send(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    await client.read(answer);
    assert.equal(String(await client.read(3)), "abc");
    assert.equal(sessions.at(-1)?.destination.host, "origin.test");
  }
});

test("SOCKS5 authentication", async () => {
  await using origin = await openTcpOrigin(echo);
  const { accept, sessions } = directAccept();
  const users = [
    { username: "alice", password: "s3cr" },
    { username: "bob", password: "" },
  ];
  await using proxy = await openTestInbound(socks, { users }, { accept });
  const request = `05 01 00 01 7f000001 ${portHex(origin.port)}`;
  using client = await openRawClient(proxy.port);
  client.send(hex(`05 02 00 02 01 05 616c696365 04 73336372 ${request}`));
  assert.deepEqual((await client.read(14)).subarray(0, 6), hex("05 02 01 00 05 00"));
  assert.equal(sessions.at(-1)?.inbound.user, "alice");
  using empty = await openRawClient(proxy.port);
  empty.send(hex(`05 01 02 01 03 626f62 00 ${request}`));
  assert.deepEqual((await empty.read(14)).subarray(0, 6), hex("05 02 01 00 05 00"));
  const count = sessions.length;
  assert.equal(latin1(await say(proxy.port, hex("05 01 00"))), "05ff");
  assert.equal(latin1(await say(proxy.port, hex("05 00"))), "05ff");
  assert.equal(latin1(await say(proxy.port, hex(`05 01 02 01 05 616c696365 01 78 ${request}`))), "05020101");
  assert.equal(latin1(await say(proxy.port, hex(`05 01 02 01 01 78 00 ${request}`))), "05020101");
  assert.equal(latin1(await say(proxy.port, hex("04 01 0050 7f000001 616c696365 00"))), "005d000000000000");
  assert.equal(sessions.length, count);
  using bob = await openRawClient(proxy.port);
  bob.send(hex(`04 01 ${portHex(origin.port)} 7f000001 626f62 00`));
  assert.deepEqual(await bob.read(2), hex("00 5a"));
  assert.equal(sessions.at(-1)?.inbound.user, "bob");
});

test("a client that offers only a password passes where none is wanted", async () => {
  await using origin = await openTcpOrigin(echo);
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(socks, {}, { accept });
  using client = await openRawClient(proxy.port);
  client.send(hex(`05 01 02 01 01 78 01 79 05 01 00 01 7f000001 ${portHex(origin.port)}`));
  assert.deepEqual((await client.read(14)).subarray(0, 6), hex("05 02 01 00 05 00"));
  assert.equal(sessions.at(-1)?.inbound.user, null);
});

test("what is not supported is answered with its code", async () => {
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(socks, { udp: false }, { accept });
  const answer = async (bytes: string) => latin1(await say(proxy.port, hex(bytes)));
  assert.equal(await answer("05 01 00 05 02 00 01 7f000001 0050"), "0500" + "05070001000000000000");
  assert.equal(await answer("05 01 00 05 03 00 01 7f000001 0050"), "0500" + "05070001000000000000");
  assert.equal(await answer("05 01 00 05 f0 00 01 7f000001 0050"), "0500" + "05070001000000000000");
  assert.equal(await answer("05 01 00 05 01 00 02 7f000001 0050"), "0500" + "05080001000000000000");
  assert.equal(await answer("04 02 0050 7f000001 00"), "005b000000000000");
  assert.equal(await answer("05 01 00 05 01 00 03 00 0050"), "0500");
  assert.equal(await answer("05 01 00 04"), "0500");
  assert.equal(await answer("06"), "");
  assert.equal(sessions.length, 0);
});

test("dial failures: SOCKS4 has one code, REJECT-DROP none", async () => {
  let failure = new DialError("refused", "no");
  const { accept } = directAccept(undefined, () => failure);
  await using proxy = await openTestInbound(socks, {}, { accept });
  assert.equal(latin1(await say(proxy.port, hex("04 01 0050 7f000001 00"))), "005b000000000000");
  failure = new DialError("dropped", "silence");
  assert.equal(latin1(await say(proxy.port, hex("04 01 0050 7f000001 00"))), "");
  assert.equal(latin1(await say(proxy.port, hex("05 01 00 05 01 00 01 7f000001 0050"))), "0500");
  const cause = Object.assign(new Error("x"), { code: "EHOSTUNREACH" });
  failure = new DialError("unreachable", "host", { cause });
  const answer = latin1(await say(proxy.port, hex("05 01 00 05 01 00 01 7f000001 0050")));
  assert.equal(answer.slice(0, 8), "05000504");
});

interface Association extends Disposable {
  readonly client: RawClient;
  readonly port: number;
}

async function associate(port: number): Promise<Association> {
  const client = await openRawClient(port);
  client.send(hex("05 01 00 05 03 00 01 00000000 0000"));
  const answer = await client.read(12);
  assert.deepEqual(answer.subarray(0, 10), hex("05 00 05 00 00 01 7f000001"));
  return { client, port: answer.readUInt16BE(10), [Symbol.dispose]: () => client[Symbol.dispose]() };
}

async function openUdp(address = "127.0.0.1"): Promise<UdpSocket & AsyncDisposable> {
  const socket = createSocket("udp4");
  socket.bind(0, address);
  await once(socket, "listening");
  return socket;
}

async function received(socket: UdpSocket): Promise<Buffer> {
  const [bytes] = (await once(socket, "message")) as [Buffer];
  return bytes;
}

test("UDP ASSOCIATE: a real echo, one session a source port, several destinations", async () => {
  await using first = await openUdpEcho();
  await using second = await openUdpEcho();
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(mixed, {}, { accept });
  using association = await associate(proxy.port);
  await using one = await openUdp();
  await using two = await openUdp();
  for (const [socket, port] of [
    [one, first.port],
    [one, second.port],
    [two, first.port],
  ] as const) {
    const datagram = hex(`0000 00 01 7f000001 ${portHex(port)} 616263`);
    const answer = received(socket);
    socket.send(datagram, association.port, "127.0.0.1");
    assert.deepEqual(await answer, datagram); // the header names the real source, which is the destination here
  }
  assert.equal(sessions.length, 2);
  assert.deepEqual(
    sessions.map(({ source }) => source.port),
    [one.address().port, two.address().port],
  );
  assert.equal(sessions[0]?.inbound.type, "Socks5");
});

test("UDP ASSOCIATE: bad datagrams and other people's are dropped", async () => {
  await using origin = await openUdpEcho();
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(socks, {}, { accept });
  using association = await associate(proxy.port);
  await using unknownClient = await openUdp("127.0.0.2");
  await using own = await openUdp();
  const good = hex(`0000 00 01 7f000001 ${portHex(origin.port)} 6f6b`);
  unknownClient.send(good, association.port, "127.0.0.1");
  for (const bad of [
    "",
    "00",
    "0000 01",
    `0000 01 01 7f000001 ${portHex(origin.port)} 61`,
    "0000 00 09 00",
    "ffff 00 01",
  ])
    own.send(hex(bad), association.port, "127.0.0.1");
  const answer = received(own);
  own.send(good, association.port, "127.0.0.1");
  assert.deepEqual(await answer, good);
  assert.equal(sessions.length, 1);
  assert.equal(sessions[0]?.source.ip, "127.0.0.1");
});

test("UDP ASSOCIATE ends with its TCP connection, which may say anything meanwhile", async () => {
  const { promise: got, resolve } = Promise.withResolvers<DatagramSession>();
  const accept: Accept = (session) => {
    if (session.network === "udp") resolve(session);
  };
  await using proxy = await openTestInbound(socks, {}, { accept });
  using association = await associate(proxy.port);
  association.client.send("ignored");
  await using own = await openUdp();
  own.send(hex("0000 00 01 08080808 0035 61"), association.port, "127.0.0.1");
  const { flow, metadata } = await got;
  assert.equal(metadata.destination.ip, "8.8.8.8");
  const first = new Promise<string>((on) => flow.receive(({ payload }) => on(String(payload))));
  assert.equal(await first, "a");
  association.client.socket.end();
  await flow.closed;
  await association.client.rest();
  flow.send({ payload: Buffer.from("late"), destination: metadata.destination }); // no receiver: dropped
});

test("UDP ASSOCIATE: a session that was let go is opened anew", async () => {
  const sessions: DatagramSession[] = [];
  let wake = (): void => {};
  const accept: Accept = (session) => {
    if (session.network === "udp") sessions.push(session);
    wake();
  };
  await using proxy = await openTestInbound(socks, {}, { accept });
  using association = await associate(proxy.port);
  await using own = await openUdp();
  for (let count = 1; count <= 2; count++) {
    const opened = new Promise<void>((on) => (wake = on));
    own.send(hex("0000 00 01 08080808 0035 61"), association.port, "127.0.0.1");
    await opened;
    assert.equal(sessions.length, count);
    await sessions[count - 1]?.flow[Symbol.asyncDispose]();
  }
});

test("tunnel: TCP and UDP go to the target", async () => {
  await using origin = await openTcpOrigin(echo);
  const { accept, sessions } = directAccept();
  const target = `origin.test:${origin.port}`;
  await using inbound = await openTestInbound(tunnel, { network: ["tcp"], target }, { accept });
  using client = await openRawClient(inbound.port);
  client.send("ping");
  assert.equal(await client.until("ping"), "ping");
  assert.deepEqual(sessions[0]?.destination, { host: "origin.test", ip: null, port: origin.port });
  assert.equal(sessions[0]?.inbound.type, "Tunnel");

  await using udp = await openUdpEcho();
  await using datagrams = await openTestInbound(
    tunnel,
    { network: "udp", target: `127.0.0.1:${udp.port}` },
    { accept },
  );
  await using one = await openUdp();
  await using two = await openUdp();
  for (const socket of [one, two, one]) {
    const answer = received(socket);
    socket.send("hello", datagrams.port, "127.0.0.1");
    assert.equal(String(await answer), "hello");
  }
  assert.equal(sessions.filter(({ network }) => network === "udp").length, 2);
});

test("tunnel: an IPv4 client of a dual-stack UDP listener gets its answers", async (t) => {
  await using udp = await openUdpEcho();
  const { accept, sessions } = directAccept();
  const options = { network: "udp", target: `127.0.0.1:${udp.port}` };
  let opened;
  try {
    opened = await openTestInbound(tunnel, options, { accept, ip: "::" as Ip });
  } catch {
    return t.skip("SKIP IPv6: no IPv6 here");
  }
  await using inbound = opened;
  await using own = await openUdp();
  const answer = received(own);
  own.send("hello", inbound.port, "127.0.0.1");
  assert.equal(String(await answer), "hello");
  assert.equal(sessions[0]?.source.ip, "127.0.0.1");
});

test("tunnel: a failed dial closes", async () => {
  const { accept } = directAccept(undefined, () => new DialError("refused", "no"));
  await using inbound = await openTestInbound(tunnel, { network: "tcp", target: "[::1]:1" }, { accept });
  assert.equal(await say(inbound.port, "x"), "");
  for (const target of ["", "a", "a:0", "::1:80", "[x]:80", "a b:80"])
    await assert.rejects(
      openTestInbound(tunnel, { network: "tcp", target }, { accept }),
      /host:port/,
      target,
    );
});
