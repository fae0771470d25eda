/** Users of the file, whose requests workers understand and decide on: what else they say is for the main thread. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import type { Handshake } from "#core/accepted.ts";
import type { Destination } from "#core/session.ts";
import type { LetIn, WrittenUsers } from "#core/written-users.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import * as trojan from "#protocols/trojan/wire.ts";
import * as vless from "#protocols/vless/wire.ts";
import { MUX_COOL_DESTINATION, MUX_DESTINATION } from "#transport/mux/preface.ts";
import { answerTo } from "../support/client.ts";
import { DecidingEngine } from "../support/deciding-engine.ts";
import { openListenerTls } from "../support/listener-tls.ts";
import { nativeTls as native } from "../support/native-tls.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { until } from "../support/until.ts";

const skip = native === null ? "SKIP users in workers: needs Linux and node:ffi" : false;

const [ALICE, BOB] = ["letmein", "open sesame"].map(trojan.keyOf) as [string, string];
const ID = Buffer.from("b831381d63244d53ad4f8cda48b30811", "hex");
const TROJAN: WrittenUsers = {
  protocol: "trojan",
  type: "Trojan",
  keys: [ALICE, BOB],
  names: ["alice", "bob"],
};
const VLESS: WrittenUsers = {
  protocol: "vless",
  type: "Vless",
  keys: [ID.toString("latin1")],
  names: ["carol"],
};

const to = (port: number): Destination => ({ host: null, ip: LOOPBACK_V4, port });
const trojanTo = (key: string, destination: Destination, command = trojan.COMMAND_CONNECT): Buffer =>
  trojan.encodeRequest(key, { command, destination });
const vlessTo = (port: number, flow = ""): Buffer =>
  vless.encodeRequest(ID, { flow, command: vless.COMMAND_TCP, destination: to(port) });

/** What is held of users, by name. */
class Users implements LetIn {
  readonly held = new Map<string, () => void>();
  readonly #written: WrittenUsers;

  constructor(written: WrittenUsers) {
    this.#written = written;
  }

  users(): WrittenUsers {
    return this.#written;
  }

  hold(user: string, end: () => void): Disposable {
    this.held.set(user, end);
    return { [Symbol.dispose]: () => void this.held.delete(user) };
  }
}

const bare = (letIn: LetIn): Handshake => ({ handshake: "first-bytes", letIn });

function dialled(engine: DecidingEngine): Socket {
  return connect({ port: engine.port, host: LOOPBACK_V4, allowHalfOpen: true }).on("error", () => {});
}

/** Until workers decide by it: the first connections are asked for. */
async function untilDecided(engine: DecidingEngine, request: Buffer, size: number): Promise<void> {
  for (;;) {
    const before = engine.asked.length;
    const client = dialled(engine);
    const heard = await answerTo(client, Buffer.concat([request, Buffer.from("ping")]), size);
    client.destroy();
    if (heard.length === size && engine.asked.length === before) return;
  }
}

test(
  "each is decided by its own name, and what comes behind the request is the tunnel's",
  { skip },
  async () => {
    await using origin = await openTcpOrigin(echo);
    await using engine = await DecidingEngine.openFor(2, bare(new Users(TROJAN)));
    await untilDecided(engine, trojanTo(ALICE, to(origin.port)), 4);
    const [asked, before] = [engine.asked.length, engine.served.length];
    for (const [key, words] of [
      [ALICE, "ping"],
      [BOB, "something longer"],
    ] as const) {
      const client = dialled(engine);
      const said = Buffer.concat([trojanTo(key, to(origin.port)), Buffer.from(words)]);
      assert.equal(await answerTo(client, said, words.length), words);
      client.end();
      await once(client, "end");
    }
    await until("both are reported", () => engine.served.length >= before + 2);
    assert.equal(engine.asked.length, asked);
    const rows = engine.served.slice(-2).map(({ metadata: { inbound, destination }, uploadBytes }) => ({
      user: inbound.user,
      bytes: uploadBytes,
      about: [inbound.type, inbound.isRemote, destination.port],
    }));
    const about = ["Trojan", true, origin.port];
    assert.deepEqual(
      rows.toSorted((a, b) => a.bytes - b.bytes),
      [
        { user: "alice", bytes: 4, about },
        { user: "bob", bytes: 16, about },
      ],
    );
  },
);

test("an answer of VLESS has its header in front", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using engine = await DecidingEngine.openFor(1, bare(new Users(VLESS)));
  await untilDecided(engine, vlessTo(origin.port), 6);
  const client = dialled(engine);
  const said = Buffer.concat([vlessTo(origin.port), Buffer.from("ping")]);
  assert.equal(await answerTo(client, said, 6), "\0\0ping");
  client.destroy();
  await until("it is reported", () => engine.served.length >= 2);
  const [last] = engine.served.slice(-1);
  assert.deepEqual([last?.metadata.inbound.user, last?.metadata.inbound.type], ["carol", "Vless"]);
});

test("over TLS it is the same", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  using tls = await openListenerTls(native, []);
  const letIn = new Users(TROJAN);
  const handshake: Handshake = { handshake: "tls", contexts: tls.contexts, showsFirst: true, letIn };
  await using engine = await DecidingEngine.openFor(1, handshake);
  const words = "x".repeat(100_000);
  const exchange = async (): Promise<string> => {
    const client = connectTls({ port: engine.port, host: LOOPBACK_V4, rejectUnauthorized: false });
    client.on("error", () => {});
    await once(client, "secureConnect");
    const said = Buffer.concat([trojanTo(BOB, to(origin.port)), Buffer.from(words)]);
    const heard = await answerTo(client, said, words.length);
    client.destroy();
    return heard;
  };
  await until("one is decided", async () => (await exchange()) === words && engine.served.length > 0);
  const asked = engine.asked.length;
  assert.equal(await exchange(), words);
  await until("it is reported", () =>
    engine.served.some(({ downloadBytes }) => downloadBytes >= words.length),
  );
  assert.equal(engine.asked.length, asked);
  assert.deepEqual(new Set(engine.served.map(({ metadata }) => metadata.inbound.user)), new Set(["bob"]));
});

test("one that stays ends with its user, and is let go of at its end", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  const users = new Users(TROJAN);
  await using engine = await DecidingEngine.openFor(1, bare(users));
  await untilDecided(engine, trojanTo(ALICE, to(origin.port)), 4);
  const [alice, bob] = [dialled(engine), dialled(engine)];
  const ping = Buffer.from("ping");
  assert.equal(await answerTo(alice, Buffer.concat([trojanTo(ALICE, to(origin.port)), ping]), 4), "ping");
  assert.equal(await answerTo(bob, Buffer.concat([trojanTo(BOB, to(origin.port)), ping]), 4), "ping");
  engine.join();
  assert.deepEqual(new Set(users.held.keys()), new Set(["alice", "bob"]));
  const closed = new Promise((resolve) => void alice.once("close", resolve));
  users.held.get("alice")?.();
  await closed;
  assert.equal(await answerTo(bob, ping, 4), "ping", "others go on");
  bob.destroy();
  await until("both are let go of", () => users.held.size === 0);
});

test("a condition on users holds for their connections", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using engine = await DecidingEngine.openFor(1, bare(new Users(TROJAN)));
  engine.change([{ is: "one-of", fact: "inboundUser", words: ["bob"] }]);
  await untilDecided(engine, trojanTo(BOB, to(origin.port)), 4);
  const asked = engine.asked.length;
  await answerTo(dialled(engine), Buffer.concat([trojanTo(ALICE, to(origin.port)), Buffer.from("ping")]), 4);
  assert.equal(engine.asked.length, asked + 1, "no rule holds, and where that leads is not for a worker");
});

test("what is not a user's plain request is shown to the main thread, whole", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using engine = await DecidingEngine.openFor(1, bare(new Users(TROJAN)));
  await untilDecided(engine, trojanTo(ALICE, to(origin.port)), 4);
  const plain = trojanTo(ALICE, to(origin.port));
  const wrongEnd = Buffer.from(plain);
  wrongEnd[plain.length - 1] = 0;
  const others: Record<string, Buffer> = {
    "an unknown key": trojanTo(trojan.keyOf("other"), to(origin.port)),
    "another spelling of the key": Buffer.concat([Buffer.from(ALICE.toUpperCase()), plain.subarray(56)]),
    "a request for datagrams": trojanTo(ALICE, to(origin.port), trojan.COMMAND_UDP),
    "many streams": trojanTo(ALICE, MUX_DESTINATION),
    "many streams of mux.cool": trojanTo(ALICE, MUX_COOL_DESTINATION),
    "half a request": plain.subarray(0, plain.length - 3),
    "half a key": plain.subarray(0, 20),
    "a wrong end": wrongEnd,
    "a web request": Buffer.from("GET / HTTP/1.1\r\nHost: server.test\r\n\r\n"),
  };
  for (const [what, said] of Object.entries(others)) {
    const before = engine.asked.length;
    dialled(engine).write(said);
    await until(what, () => engine.asked.length === before + 1);
    assert.deepEqual(engine.asked.at(-1)?.request, said, what);
  }
});

test("a flow, and a request of VLESS that is not whole, are shown to the main thread", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using engine = await DecidingEngine.openFor(1, bare(new Users(VLESS)));
  await untilDecided(engine, vlessTo(origin.port), 6);
  const plain = vlessTo(origin.port);
  const unknown = Buffer.from(plain);
  unknown[5] = (unknown[5] ?? 0) ^ 1;
  const version = Buffer.concat([Buffer.of(1), plain.subarray(1)]);
  for (const said of [vlessTo(origin.port, vless.VISION), plain.subarray(0, 18), unknown, version]) {
    const before = engine.asked.length;
    dialled(engine).write(said);
    await until("it is asked for", () => engine.asked.length === before + 1);
    assert.deepEqual(engine.asked.at(-1)?.request, said);
  }
});
