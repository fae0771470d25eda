import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openQuicClientTls, openQuicServerTls } from "../../../test/support/quic-tls.ts";
import { makeCertificate } from "../../../test/support/certificate.ts";
import { type OpenQuicTls, type QuicTls, TlsAlert, type TlsLevel } from "./tls.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";

interface Said {
  readonly level: TlsLevel;
  readonly bytes: Uint8Array;
}

/** One side, with all that it said and was told. */
class Side {
  readonly out: Said[] = [];
  readonly secrets: string[] = [];
  parameters = "";
  readonly tls: QuicTls;

  constructor(open: OpenQuicTls, parameters: string) {
    this.tls = open(Buffer.from(parameters), {
      send: (level, bytes) => void this.out.push({ level, bytes }),
      secret: (level, forWriting, suite, secret) =>
        void this.secrets.push(`${level} ${forWriting} ${suite} ${Buffer.from(secret).toString("hex")}`),
      peerParameters: (bytes) => (this.parameters = Buffer.from(bytes).toString()),
    });
  }
}

/** A whole handshake by these two, and what comes behind it; was it with an earlier session? */
function isResumed(openClient: OpenQuicTls, openServer: OpenQuicTls, isRight = true): boolean {
  const [client, server] = [new Side(openClient, "c"), new Side(openServer, "s")];
  client.tls.begin();
  for (let turn = 0; turn < 3; turn++) {
    for (const { level, bytes } of client.out.splice(0)) server.tls.give(level, bytes);
    for (const { level, bytes } of server.out.splice(0)) {
      client.tls.give(level, bytes);
      if (client.tls.isDone && isRight) assert.equal(client.tls.refusal(), null);
    }
  }
  assert.ok(client.tls.isDone && server.tls.isDone);
  assert.equal(client.tls.isResumed, server.tls.isResumed);
  const keys = [client, server].map(({ tls }) => tls.exportKey(Buffer.from("l"), Buffer.from("c"), 32));
  assert.deepEqual(keys[0], keys[1]);
  const answer = client.tls.isResumed;
  for (const side of [client, server]) side.tls[Symbol.dispose]();
  return answer;
}

/** Hands on in pieces of `size` bytes until neither side says more. */
function shakeHands(client: Side, server: Side, size = 64): void {
  client.tls.begin();
  for (let turn = 0; turn < 20; turn++) {
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      for (const { level, bytes } of from.out.splice(0))
        for (let at = 0; at < bytes.length; at += size) to.tls.give(level, bytes.subarray(at, at + size));
    }
  }
}

/** The groups of the key_share extension (RFC 8446 §4.1.2, §4.2.8). */
function keySharesOf(hello: Buffer): number[] {
  let at = 4 + 2 + 32;
  at += 1 + hello.readUInt8(at);
  at += 2 + hello.readUInt16BE(at);
  at += 1 + hello.readUInt8(at) + 2;
  while (hello.readUInt16BE(at) !== 51) at += 4 + hello.readUInt16BE(at + 2);
  const end = at + 4 + hello.readUInt16BE(at + 2);
  const groups: number[] = [];
  for (at += 6; at < end; at += 4 + hello.readUInt16BE(at + 2)) groups.push(hello.readUInt16BE(at));
  return groups;
}

const mirrored = (lines: readonly string[]) =>
  lines.map((line) => line.replace(/true|false/, (word) => (word === "true" ? "false" : "true"))).sort();

describe("TLS of QUIC by libssl", { skip: SKIP }, () => {
  test("both sides agree on secrets, parameters and a protocol, whatever the pieces", async () => {
    for (const size of [7, 64, 4096]) {
      const client = new Side(await openQuicClientTls(), "of the client");
      const server = new Side(openQuicServerTls(), "of the server");
      shakeHands(client, server, size);
      assert.ok(client.tls.isDone && server.tls.isDone);
      assert.deepEqual(mirrored(client.secrets), [...server.secrets].sort());
      assert.equal(client.secrets.length, 4);
      assert.equal(client.parameters, "of the server");
      assert.equal(server.parameters, "of the client");
      assert.equal(client.tls.alpn(), "h3");
      assert.equal(server.tls.alpn(), "h3");
      assert.equal(client.tls.refusal(), null);
      for (const side of [client, server]) side.tls[Symbol.dispose]();
    }
  });

  test("once it is disposed of, questions throw instead of asking the library about nothing", async () => {
    const client = new Side(await openQuicClientTls(), "");
    const server = new Side(openQuicServerTls(), "");
    shakeHands(client, server);
    for (const { tls } of [client, server]) {
      tls[Symbol.dispose]();
      assert.throws(() => tls.alpn(), /was freed/);
      assert.throws(() => tls.refusal(), /was freed/);
      assert.throws(() => tls.exportKey(Buffer.of(1), Buffer.of(), 8), /no key/);
      assert.match(tls.explain(new Error("it ended")).message, /it ended/);
      tls.give(2, Buffer.of(1));
      tls[Symbol.dispose]();
    }
  });

  test("a node goes on with its last session, once each time, and begins anew with a server that lost it", async () => {
    const [node, other] = [await openQuicClientTls(), await openQuicClientTls()];
    const server = openQuicServerTls();
    assert.equal(isResumed(node, server), false);
    assert.equal(isResumed(other, server), false, "another node has sessions of its own");
    for (let again = 0; again < 3; again++) assert.equal(isResumed(node, server), true);
    assert.equal(isResumed(node, openQuicServerTls()), false, "other ticket keys");
  });

  test("sessions of a server that was not found to be the right one are not kept", async () => {
    const node = await openQuicClientTls();
    const server = openQuicServerTls();
    for (let again = 0; again < 2; again++) assert.equal(isResumed(node, server, false), false);
  });

  test("keys of the connection are the same on both sides, for each label and context, once it is done", async () => {
    const client = new Side(await openQuicClientTls(), "");
    const server = new Side(openQuicServerTls(), "");
    const [label, context] = [Buffer.alloc(16, 0x80), Buffer.from("password")];
    assert.throws(() => client.tls.exportKey(label, context, 32), /no key/);
    shakeHands(client, server);
    const key = client.tls.exportKey(label, context, 32);
    assert.equal(key.length, 32);
    assert.deepEqual(server.tls.exportKey(label, context, 32), key);
    assert.notDeepEqual(server.tls.exportKey(label, Buffer.from("other"), 32), key);
    assert.notDeepEqual(server.tls.exportKey(Buffer.alloc(16, 1), context, 32), key);
    assert.equal(client.tls.exportKey(label, new Uint8Array(0), 8).length, 8);
    client.tls[Symbol.dispose]();
    assert.throws(() => client.tls.exportKey(label, context, 32), /no key/);
  });

  test("the hello shows keys for X25519 with and without ML-KEM: some servers know only one", async () => {
    const client = new Side(await openQuicClientTls(), "");
    client.tls.begin();
    const hello = Buffer.concat(client.out.map(({ bytes }) => bytes));
    assert.deepEqual(keySharesOf(hello), [0x11ec, 0x1d]);
  });

  test("a suite that the server wants", async () => {
    const client = new Side(await openQuicClientTls(), "c");
    const server = new Side(openQuicServerTls({ ciphers: "TLS_CHACHA20_POLY1305_SHA256:AES128-SHA" }), "s");
    shakeHands(client, server);
    assert.ok(client.secrets.every((line) => line.includes(String(0x1303))));
  });

  test("another certificate than the pinned one, and one that no authority knows", async () => {
    const other = makeCertificate({ names: ["server.test"] });
    const pinned = new Side(await openQuicClientTls(), "c");
    shakeHands(pinned, new Side(openQuicServerTls({ certificate: other }), "s"));
    assert.match(pinned.tls.refusal()?.message ?? "", /fingerprint/);
    const believing = new Side(await openQuicClientTls({ fingerprint: null }), "c");
    const failure = catchOf(() => shakeHands(believing, new Side(openQuicServerTls(), "s")));
    assert.ok(failure instanceof TlsAlert);
    assert.match(believing.tls.explain(failure).message, /the certificate is refused: self.signed/);
  });

  test("a protocol that the server does not have, and bytes that are none of TLS", async () => {
    const client = new Side(await openQuicClientTls({ alpn: ["other"] }), "c");
    const failure = catchOf(() => shakeHands(client, new Side(openQuicServerTls(), "s")));
    assert.ok(failure instanceof TlsAlert);
    assert.equal(failure.alert, 120, "no_application_protocol");
    const server = new Side(openQuicServerTls(), "s");
    assert.throws(() => server.tls.give(0, Buffer.alloc(200, 0x41)), TlsAlert);
  });

  test("what an event throws comes out, and nothing happens behind the end", async () => {
    const open = await openQuicClientTls();
    const fail = (): never => {
      throw new RangeError("of the event");
    };
    const tls = open(Buffer.from("c"), { send: fail, secret: fail, peerParameters: fail });
    assert.throws(() => tls.begin(), RangeError);
    tls[Symbol.dispose]();
    tls[Symbol.dispose]();
    tls.give(0, Buffer.alloc(10));
    const inside: QuicTls = open(Buffer.from("c"), {
      send: () => inside[Symbol.dispose](), // from within a callback
      secret: () => {},
      peerParameters: () => {},
    });
    inside.begin();
    inside.give(0, Buffer.alloc(10));
  });
});

function catchOf(run: () => void): Error {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof Error);
    return error;
  }
  return assert.fail("nothing was thrown");
}
