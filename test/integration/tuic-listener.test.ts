/** The listener of TUIC on real sockets, with our node and with clients that keep to no order. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { after, describe, test } from "node:test";
import { DialError } from "#core/errors.ts";
import type { HostMemory } from "#core/host-memory.ts";
import type { Accept, ManagedInbound } from "#core/inbound.ts";
import type { Datagram, Session } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { quicLibrary } from "#platform/quic.ts";
import { tuic } from "#protocols/tuic/index.ts";
import { encodeAuthenticate, encodeConnect, encodePacket, TOKEN_BYTES } from "#protocols/tuic/wire.ts";
import { QuicClient } from "#transport/quic/client.ts";
import { PeerClosed } from "#transport/quic/connection-end.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { openTestInbound, openTestOutbound } from "../support/inbound-env.ts";
import { echo, exchange } from "../support/echo-session.ts";
import { openQuicEngine } from "../support/quic-engine.ts";
import { openQuicClientTls, quicCertificate } from "../support/quic-tls.ts";
import { literalsOnly } from "../support/resolvers.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const ADA = "b831381d-6324-4d53-ad4f-8cda48b30811";
const BOB = "0e0ffb18-7d5f-4a7b-9b67-b1ba5e0b8a22";
const USERS = { [ADA]: "letmein", [BOB]: "or-me" };
const TO = toDestination("origin.test", 80);
const context = () => ({ signal: AbortSignal.timeout(10_000), metadata: null });
const sha = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const dialer = openDirectDialer({ resolver: literalsOnly });

const openIn = (memory: HostMemory | undefined, accept: Accept, options: object) =>
  openTestInbound(
    tuic,
    { users: USERS, certificate: quicCertificate.cert, "private-key": quicCertificate.key, ...options },
    { accept, memory },
  );

const openNode = (port: number, options: object = {}) =>
  openTestOutbound(
    tuic,
    {
      server: "127.0.0.1",
      port,
      uuid: ADA,
      password: "letmein",
      sni: "server.test",
      fingerprint: quicCertificate.fingerprint,
      ...options,
    },
    dialer,
  );

/** A QUIC client that has said nothing of TUIC. */
async function openUnauthenticated(port: number): Promise<QuicClient> {
  const library = quicLibrary();
  assert.ok(library !== null);
  const server = toDestination("127.0.0.1", port);
  return QuicClient.open(
    {
      node: "client",
      flow: await dialer.associate(server, context()),
      server,
      filter: null,
      ciphers: library.ciphers,
      openTls: await openQuicClientTls(),
      congestion: new NewReno(),
      onDatagram() {},
      onStream: (stream) => void stream.on("error", () => {}).resume(),
    },
    AbortSignal.timeout(10_000),
  );
}

function authenticate({ connection }: QuicClient, uuid: string, password: string): void {
  const id = Buffer.from(uuid.replaceAll("-", ""), "hex");
  const token = connection.exportKey(id, Buffer.from(password), TOKEN_BYTES);
  connection
    .open(false)
    ?.on("error", () => {})
    .end(encodeAuthenticate(id, token));
}

async function endOf(client: QuicClient): Promise<number> {
  const end = await client.closed;
  assert.ok(end instanceof PeerClosed && end.isApplication, String(end));
  return end.closeCode;
}

const engine = SKIP === false ? await openQuicEngine() : null;
after(() => engine?.[Symbol.asyncDispose]());

for (const [where, memory] of [
  ["on the main thread", undefined],
  ["in a thread of its own", engine?.memory],
] as const)
  describe(`the listener of TUIC ${where}`, { skip: SKIP }, () => {
    const openListener = (accept: Accept, options: object = {}) => openIn(memory, accept, options);

    test("streams of a user in both directions, with what rules and accounting read", async () => {
      const sessions: Session[] = [];
      await using listener = await openListener((session) => {
        sessions.push(session);
        echo(session);
      });
      await using node = await openNode(listener.port, { uuid: BOB, password: "or-me" });
      const bytes = randomBytes(3_000_000);
      const [first, second] = await Promise.all([node.connect(TO, context()), node.connect(TO, context())]);
      const [one, other] = await Promise.all([exchange(first, bytes), exchange(second, Buffer.from("x"))]);
      assert.deepEqual([sha(one), String(other)], [sha(bytes), "x"]);
      const { inbound, destination, source } = sessions[0]?.metadata ?? assert.fail("no session");
      assert.deepEqual(
        [inbound.user, inbound.type, inbound.name, inbound.isRemote],
        [BOB, "Tuic", "test-in", true],
      );
      assert.deepEqual([destination, source.ip], [TO, "127.0.0.1"]);
    });

    for (const mode of ["native", "quic"])
      test(`datagrams in mode ${mode}, in parts where they are long, each flow for itself`, async () => {
        let flows = 0;
        await using listener = await openListener((session) => {
          flows++;
          echo(session);
        });
        await using node = await openNode(listener.port, { "udp-relay-mode": mode });
        const [near, far] = await Promise.all([node.associate(TO, context()), node.associate(TO, context())]);
        const came: [number, string, string][] = [];
        const note =
          (flow: number) =>
          ({ payload, destination }: Datagram) =>
            void came.push([flow, Buffer.from(payload).toString("hex"), String(destination.ip)]);
        near.receive(note(1));
        far.receive(note(2));
        const long = randomBytes(9000);
        near.send({ payload: long, destination: toDestination("192.0.2.1", 53) });
        far.send({ payload: Buffer.from("a"), destination: toDestination("192.0.2.2", 54) });
        await until("both answers", () => came.length === 2);
        came.sort(([one], [other]) => one - other);
        assert.deepEqual(came, [
          [1, long.toString("hex"), "192.0.2.1"],
          [2, "61", "192.0.2.2"],
        ]);
        assert.equal(flows, 2);
      });

    test("the end of a client's flow ends it here", async () => {
      const ended: string[] = [];
      await using listener = await openListener((session) => {
        if (session.network === "udp") void session.flow.closed.then(() => ended.push("flow"));
        echo(session);
      });
      await using node = await openNode(listener.port);
      const flow = await node.associate(TO, context());
      const came: Datagram[] = [];
      flow.receive((item) => void came.push(item));
      flow.send({ payload: Buffer.from("a"), destination: TO });
      await until("the answer", () => came.length === 1);
      await flow[Symbol.asyncDispose]();
      await until("its end", () => ended.length === 1);
    });

    test("a dial that fails resets the stream", async () => {
      await using listener = await openListener((session) => {
        if (session.network === "tcp") session.reply(new DialError("refused", "nothing of this is told"));
      });
      await using node = await openNode(listener.port);
      const stream = await node.connect(TO, context());
      const [error] = await once(stream.resume(), "error");
      assert.match(String(error), /the peer reset the stream/);
    });

    test("a wrong password, an unknown uuid, and a client that says nothing are sent away by the codes of the protocol", async () => {
      await using listener = await openListener(echo, { "authentication-timeout": 300 });
      for (const [uuid, password] of [
        [ADA, "wrong"],
        [ADA, "or-me"],
        ["00000000-0000-4000-8000-000000000000", "letmein"],
      ] as const) {
        const client = await openUnauthenticated(listener.port);
        authenticate(client, uuid, password);
        assert.equal(await endOf(client), 0xfffffff1);
      }
      assert.equal(await endOf(await openUnauthenticated(listener.port)), 0xfffffff2);
      const babbler = await openUnauthenticated(listener.port);
      babbler.connection
        .open(false)
        ?.on("error", () => {})
        .end(Buffer.from("GET / HTTP/1.1"));
      assert.equal(await endOf(babbler), 0xfffffff0);
      const unknown = await openUnauthenticated(listener.port);
      unknown.connection
        .open(false)
        ?.on("error", () => {})
        .end(Buffer.of(5, 9));
      assert.equal(await endOf(unknown), 0xfffffff3);
    });

    test("what comes before the client is known waits for it, and is answered", async () => {
      await using listener = await openListener(echo, { "authentication-timeout": 60_000 });
      const client = await openUnauthenticated(listener.port);
      const stream = client.connection.open(true) ?? assert.fail("no stream");
      const bytes = randomBytes(500_000);
      stream.on("error", () => {}).write(Buffer.concat([encodeConnect(TO), bytes.subarray(0, 50_000)]));
      await until("it has arrived", () => stream.send?.buffered === 0);
      authenticate(client, ADA, "letmein");
      assert.equal(sha(await exchange(stream, bytes.subarray(50_000))), sha(bytes));
      client.close(0);
    });

    test("of datagrams that come before the client is known 32 are kept", async () => {
      const flows: Session[] = [];
      await using listener = await openListener(
        (session) => void (session.network === "udp" && flows.push(session)),
        { "authentication-timeout": 60_000 },
      );
      const client = await openUnauthenticated(listener.port);
      const { connection } = client;
      const packet = { packet: 1, fragments: 1, fragment: 0, address: TO, data: Buffer.from("a") };
      for (let association = 0; association < 50; association++)
        connection.sendDatagram(encodePacket({ ...packet, association }));
      const stream = connection.open(true) ?? assert.fail("no stream");
      stream.on("error", () => {}).write(encodeConnect(TO));
      await until("all of it has arrived", () => stream.send?.buffered === 0);
      authenticate(client, ADA, "letmein");
      await until("what was kept", () => flows.length > 0);
      assert.equal(flows.length, 32);
      client.close(0);
    });

    test("an unauthenticated client may send 128 KiB, and no more", async () => {
      await using listener = await openListener(echo, { "authentication-timeout": 3000 });
      const client = await openUnauthenticated(listener.port);
      const stream = client.connection.open(true) ?? assert.fail("no stream");
      stream.on("error", () => {});
      const piece = Buffer.alloc(1000);
      for (let count = 0; count < 400; count++) stream.write(piece);
      const taken = () => 400_000 - (stream.send?.buffered ?? 0) - stream.writableLength;
      await until("what may be sent", () => taken() > 100_000 || client.connection.isClosed);
      assert.ok(taken() <= 131_072, `${taken()} bytes were taken`);
      assert.equal(await endOf(client), 0xfffffff2);
      assert.ok(taken() <= 131_072, `${taken()} bytes were taken`);
    });

    test("of commands by streams an unauthenticated client has 128 KiB kept, and can still show who it is", async () => {
      await using listener = await openListener(echo, { "authentication-timeout": 60_000 });
      const client = await openUnauthenticated(listener.port);
      const data = randomBytes(50_000);
      const streams = Array.from({ length: 20 }, (_, association) => {
        const stream = client.connection.open(false) ?? assert.fail("no stream");
        const packet = { association, packet: 1, fragments: 1, fragment: 0, address: TO, data };
        stream.on("error", () => {}).write(encodePacket(packet));
        return stream;
      });
      const keeps = (stream: QuicStream) => stream.send?.resetCode === null;
      await until("no more than two are left", () => streams.filter(keeps).length <= 2);
      const tunnel = client.connection.open(true) ?? assert.fail("no stream");
      tunnel.on("error", () => {}).write(encodeConnect(TO));
      authenticate(client, ADA, "letmein");
      assert.equal(sha(await exchange(tunnel, data)), sha(data));
      client.close(0);
    });

    test("a user who is taken away loses the connection at once, and others keep theirs", async () => {
      await using listener = await openListener(echo);
      await using ada = await openNode(listener.port);
      await using bob = await openNode(listener.port, { uuid: BOB, password: "or-me" });
      const [hers, his] = await Promise.all([ada.connect(TO, context()), bob.connect(TO, context())]);
      for (const stream of [hers, his]) {
        stream.on("error", () => {});
        stream.write("x");
        await once(stream, "data");
      }
      const inbound = listener.inbound as ManagedInbound;
      inbound.replaceUsers([{ id: BOB, credential: `${BOB}:or-me`, flow: null }]);
      await until("the end", () => hers.destroyed);
      his.write("y");
      const [still] = await once(his, "data");
      assert.equal(String(still), "y");
    });

    test("users that are none are refused with the listener's name", async () => {
      const { cert, key } = quicCertificate;
      const rest = { certificate: cert, "private-key": key };
      const open = (options: object) => openTestInbound(tuic, { ...rest, ...options }, { accept: echo });
      await assert.rejects(open({ users: { ada: "p" } }), /listener test-in: users: expected a UUID/);
      await assert.rejects(open({ users: { [ADA]: "" } }), /the password is empty/);
      await assert.rejects(open({ users: { [ADA]: "p", [ADA.replaceAll("-", "")]: "q" } }), /there twice/);
      await assert.rejects(open({}), /users: there is none/);
      await assert.rejects(openTestInbound(tuic, { users: USERS }, { accept: echo }), /certificate/);
    });
  });
