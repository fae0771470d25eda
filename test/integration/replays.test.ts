/** What a client sent once is not answered again: by a listener that a reload opened anew, by another one, after a restart. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { createSocket } from "node:dgram";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Protocol } from "#core/protocol.ts";
import type { Destination } from "#core/session.ts";
import { clientPackets } from "#protocols/shadowsocks/client-packets.ts";
import { ss } from "#protocols/shadowsocks/index.ts";
import { findMethod, type Method, preSharedKeys } from "#protocols/shadowsocks/methods.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { freePorts } from "../support/free-ports.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { openClient } from "../support/protocol-pair.ts";
import { startCore } from "../support/start-core.ts";

const KEYS = [1, 2, 3, 4].map((byte) => Buffer.alloc(16, byte).toString("base64"));
const UUIDS = ["b831381d-6324-4d53-ad4f-8cda48b30811", "11111111-2222-3333-4444-555555555555"];
const AES_2022 = "2022-blake3-aes-128-gcm";

interface Row {
  readonly name: string;
  readonly protocol: Protocol;
  readonly listener: (users: number) => object;
  readonly client: object;
  /** Requests say when they were made, so that a restart need not forget. */
  readonly knowsTime: boolean;
}

const named = (field: string, secrets: readonly string[], users: number) =>
  secrets.slice(0, users).map((secret, at) => ({ username: `user${at}`, [field]: secret }));

const ROWS: readonly Row[] = [
  {
    name: "ss 2022",
    protocol: ss,
    listener: (users) => ({
      type: "shadowsocks",
      cipher: AES_2022,
      password: KEYS[0],
      users: named("password", KEYS.slice(1), users),
    }),
    client: { cipher: AES_2022, password: `${KEYS[0]}:${KEYS[1]}` },
    knowsTime: true,
  },
  {
    name: "ss aead",
    protocol: ss,
    listener: (users) => ({
      type: "shadowsocks",
      cipher: "aes-128-gcm",
      password: "server",
      users: named("password", ["one", "two"], users),
    }),
    client: { cipher: "aes-128-gcm", password: "one" },
    knowsTime: false,
  },
  {
    name: "vmess",
    protocol: vmess,
    listener: (users) => ({ type: "vmess", users: named("uuid", UUIDS, users) }),
    client: { uuid: UUIDS[0], alterId: 0, cipher: "auto" },
    knowsTime: true,
  },
];

/** All that a client of ours says for one short request. */
async function recorded({ protocol, client }: Row, to: Destination, said: string): Promise<Buffer> {
  const [near, far] = duplexPair();
  const dialer = {
    connect: async () => near,
    associate: () => Promise.reject(new Error("not asked for")),
  };
  await using outbound = await openClient(protocol, { server: "127.0.0.1", port: 1, ...client }, { dialer });
  const stream = await outbound.connect(to, { signal: AbortSignal.timeout(10_000), metadata: null });
  stream.on("error", () => {});
  const first = once(far, "data");
  stream.write(said);
  const [bytes] = (await first) as [Buffer];
  stream.destroy();
  return bytes;
}

/** Says it, ends, and waits until the server has ended, too. */
async function say(port: number, bytes: Buffer): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  const closed = once(socket, "close");
  socket.end(bytes);
  await closed;
}

test(
  "a stream is opened once: not after a reload that changes users, nor by another listener, nor after a restart",
  {
    timeout: 120_000,
  },
  async () => {
    const ports = await freePorts(2 * ROWS.length);
    const text = (users: number) =>
      JSON.stringify({
        "log-level": "info",
        rules: ["MATCH,DIRECT"],
        listeners: ports.map((port, at) => {
          const { name, listener } = ROWS[at % ROWS.length] as Row;
          return { name: `${name} ${at}`, listen: "127.0.0.1", port, ...listener(users) };
        }),
      });
    const received: string[] = [];
    await using origin = await openTcpOrigin((socket) => {
      socket.on("data", (bytes: Buffer) => received.push(bytes.toString()));
      socket.on("end", () => socket.end());
    });
    const earlier = await Promise.all(
      ROWS.map((row) => recorded(row, origin.destination, `${row.name} once`)),
    );
    {
      await using core = await startCore(text(1));
      const fresh = await Promise.all(ROWS.map((row) => recorded(row, origin.destination, row.name)));
      for (const [at, bytes] of fresh.entries()) await say(ports[at] as number, bytes);
      assert.deepEqual(
        received,
        ROWS.map(({ name }) => name),
        "each is answered at first",
      );
      for (const [at, bytes] of fresh.entries()) await say(ports[at + ROWS.length] as number, bytes);
      await core.reload(text(2));
      for (const [at, port] of ports.entries()) await say(port, fresh[at % ROWS.length] as Buffer);
      assert.deepEqual(
        received,
        ROWS.map(({ name }) => name),
        "and never again",
      );
      earlier.push(...fresh);
    }
    await pause(1000 - (Date.now() % 1000)); // requests tell the second
    await using _core = await startCore(text(1));
    received.length = 0;
    for (const [at, { knowsTime }] of ROWS.entries()) {
      if (!knowsTime) continue;
      await say(ports[at] as number, earlier[at] as Buffer);
      await say(ports[at] as number, earlier[at + ROWS.length] as Buffer);
    }
    assert.deepEqual(received, []);
    for (const [at, row] of ROWS.entries())
      await say(ports[at] as number, await recorded(row, origin.destination, "new"));
    assert.deepEqual(received, ["new", "new", "new"]);
  },
);

test("ss 2022: a datagram is let through once, whatever is reloaded", { timeout: 60_000 }, async () => {
  const [port] = (await freePorts(1)) as [number];
  const row = ROWS[0] as Row;
  const text = (users: number) =>
    JSON.stringify({
      "log-level": "info",
      rules: ["MATCH,DIRECT"],
      listeners: [{ name: "in", listen: "127.0.0.1", port, ...row.listener(users) }],
    });
  const received: string[] = [];
  const origin = createSocket("udp4");
  origin.on("message", (bytes, from) => {
    received.push(bytes.toString());
    origin.send("answer", from.port, from.address);
  });
  origin.bind(0, "127.0.0.1");
  await once(origin, "listening");
  const client = createSocket("udp4");
  await using core = await startCore(text(1));
  const method = findMethod(AES_2022) as Method;
  const packets = clientPackets(method, preSharedKeys(method, `${KEYS[0]}:${KEYS[1]}`), Date.now);
  const destination = { host: "127.0.0.1", ip: null, port: origin.address().port };
  const seal = (word: string) => packets.seal({ payload: Buffer.from(word), destination });
  const ask = async (...datagrams: readonly Buffer[]) => {
    const answer = once(client, "message");
    for (const datagram of datagrams) client.send(datagram, port, "127.0.0.1");
    await answer;
  };
  const first = seal("first");
  await ask(first);
  await core.reload(text(2));
  await ask(first, seal("second"));
  await core.reload(text(1));
  await ask(first, seal("third"));
  assert.deepEqual(received, ["first", "second", "third"]);
  client.close();
  origin.close();
});
