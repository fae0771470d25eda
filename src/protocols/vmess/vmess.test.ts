import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ConfigError, ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { toDestination } from "#net/address/ip.ts";
import { parseUserId } from "#protocols/shared/user-id.ts";
import { runs } from "../../../test/support/runs.ts";
import { VmessCodec } from "./codec.ts";
import * as header from "./header.ts";
import { commandKey, expandKey, kdf16 } from "./kdf.ts";
import { inboundSchema, outboundSchema } from "./options.ts";
import { type Greeting, RequestGuard, RequestMemory, serverHandshake } from "./server-handshake.ts";
import { vmessUsers } from "./users.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const UUID = "b831381d-6324-4d53-ad4f-8cda48b30811";
const KEY = commandKey(parseUserId(UUID) as Buffer);
const TIME = 1_700_000_000;
const IV = hex("000102030405060708090a0b0c0d0e0f");
const BODY_KEY = hex("101112131415161718191a1b1c1d1e1f");
const CHANCE: header.Chance = {
  authRandom: hex("01020304"),
  nonce: hex("a0a1a2a3a4a5a6a7"),
  padding: hex("aabb"),
  unixSeconds: TIME,
};
const REQUEST: header.RequestHeader = {
  iv: IV,
  key: BODY_KEY,
  verifier: 0x55,
  options: 5,
  security: header.SECURITY_AES,
  command: header.COMMAND_TCP,
  destination: toDestination("example.com", 80),
};
const USERS = vmessUsers([{ id: "ada", credential: UUID, flow: null }], "listener x");
const EMPTY = Buffer.alloc(0);
const WIRE =
  "4774fe5cc901ea4f81f2159909767a36 632a69fd04bffdad706fea08308758eaf7e8 a0a1a2a3a4a5a6a7" +
  "62f5e4542e3928912665ad15c2e4d26beb1cc6844cfdb411b2c7961a5934d7c24c478e8d9f69f9c0875a0d3dd40a554711b830c7c4601b04f1c9f34804ed0520ab5afb1b65c86c0dd98dc0";

function authenticate(
  wire: Buffer,
  guard = new RequestGuard(() => TIME * 1000, new RequestMemory()),
): Greeting | null {
  const arrived = new ByteQueue();
  arrived.push(wire);
  return serverHandshake(USERS, guard)(arrived);
}

function collect(codec: StreamCodec, wire: Buffer): { text: string; ended: boolean } {
  let [text, ended] = ["", false];
  codec.open(wire, (plain) => {
    if (plain === null) ended = true;
    else text += plain.toString("latin1");
  });
  return { text, ended };
}

describe("published values", () => {
  test("keys", () => {
    assert.equal(KEY.toString("hex"), "b50d916ac0cec067981af8e5f38a758f");
    assert.equal(header.authIdKey(KEY).toString("hex"), "1415ba74ca8b3d041a8f583fb4116315");
    assert.equal(
      expandKey(BODY_KEY).toString("hex"),
      "1bf42e241816ba29ff5f307bb1bc1d168b39e04ece3e33ab822442d7e6cefd5f",
    );
    assert.equal(kdf16(BODY_KEY, "auth_len").toString("hex"), "49d3958e625ef844be78bb41a9df9743");
  });

  test("request header, first chunk, end chunk", () => {
    const codec = new VmessCodec(REQUEST, header.sealRequest(KEY, REQUEST, CHANCE));
    const chunk = "985be84e60171b5a3bd1450570e5c6f58c305d5c23";
    assert.deepEqual(codec.seal(Buffer.from("GET")), hex(WIRE + chunk));
    assert.deepEqual(codec.sealEnd(), hex("19566334ec174d7c6cd918a0ee0a87d3d8a9"));
    const got = authenticate(hex(WIRE)) as Greeting;
    assert.equal(got.user.name, "ada");
    assert.deepEqual(got.request, REQUEST);
    assert.equal(collect(new VmessCodec(got.request, null), hex(chunk)).text, "GET");
  });

  test("response header and first chunk", () => {
    const wire = new VmessCodec(REQUEST, null).seal(Buffer.from("OK"));
    assert.deepEqual(
      wire,
      hex(
        "9bdfb1639712b6a6348d0087b8d1af379ecf67afb5ebe3ed1758679fae82f06d9be59d2295f1" +
          "1a484fe227ffc469038bbf9471c665f5cb370328",
      ),
    );
    assert.equal(collect(new VmessCodec(REQUEST, EMPTY), wire).text, "OK");
  });

  test("ChaCha20, and authenticated sizes", () => {
    const first = (change: Partial<header.RequestHeader>) =>
      new VmessCodec({ ...REQUEST, ...change }, EMPTY).seal(Buffer.from("GET"));
    assert.deepEqual(
      first({ security: header.SECURITY_CHACHA }),
      hex("985ba5888bbbe0d6e8443cf9c4043e0a290c832686"),
    );
    assert.deepEqual(
      first({ options: 0x11 }),
      hex("a819ecadf8fd76167ff3fd8e8a6c77d6f870e84e60171b5a3bd1450570e5c6f58c305d5c23"),
    );
  });
});

const FORMS = [
  ...[0x01, 0x05, 0x0d, 0x11, 0x15, 0x1d].flatMap((options) => [
    [header.SECURITY_AES, options] as const,
    [header.SECURITY_CHACHA, options] as const,
  ]),
  [header.SECURITY_NONE, 0x01] as const,
  [header.SECURITY_NONE, 0x05] as const,
  [header.SECURITY_NONE, 0x0d] as const,
  [header.SECURITY_NONE, 0x00] as const,
];
for (const [security, options] of FORMS)
  test(`security ${security}, options 0x${options.toString(16)}: both ways, 100 KiB, byte by byte, the ends`, () => {
    const request = { ...REQUEST, security, options };
    const client = new VmessCodec(request, header.sealRequest(KEY, request, CHANCE));
    const chunked = options !== 0;
    const sent = Buffer.alloc(100_000, "abcdefghij");
    const wire = Buffer.concat([client.seal(EMPTY), client.seal(sent), client.sealEnd() ?? EMPTY]);
    const arrived = new ByteQueue();
    arrived.push(wire);
    const greeting = serverHandshake(
      USERS,
      new RequestGuard(() => TIME * 1000, new RequestMemory()),
    )(arrived) as Greeting;
    const server = new VmessCodec(greeting.request, null);
    const got = collect(server, arrived.takeAll());
    assert.equal(got.text, sent.toString());
    assert.equal(got.ended, chunked);
    server.openEnd();
    const reply = Buffer.concat([
      server.seal(Buffer.from("one")),
      server.seal(Buffer.from("two")),
      server.sealEnd() ?? EMPTY,
    ]);
    let text = "";
    for (const byte of reply) text += collect(client, Buffer.from([byte])).text;
    assert.equal(text, "onetwo");
  });

test("a client's first chunk may be empty and is no end; a second one is, and so is a server's first", () => {
  for (const [security, options] of FORMS.filter(([, options]) => options !== 0)) {
    const request = { ...REQUEST, security, options };
    const client = new VmessCodec(request, EMPTY);
    const server = new VmessCodec(request, null);
    assert.deepEqual(collect(server, client.sealEnd() as Buffer), { text: "", ended: false });
    server.openEnd();
    assert.deepEqual(collect(server, client.seal(Buffer.from("late"))), { text: "late", ended: false });
    assert.deepEqual(collect(server, client.sealEnd() as Buffer), { text: "", ended: true });
    assert.deepEqual(collect(client, server.sealEnd() as Buffer), { text: "", ended: true });
  }
});

test("every truncation of the header waits; every changed bit is refused; noise too", () => {
  const wire = hex(WIRE);
  for (let size = 0; size < wire.length; size++) assert.equal(authenticate(wire.subarray(0, size)), null);
  for (let at = 0; at < wire.length; at++) {
    const changed = Buffer.from(wire);
    changed[at] = (changed[at] as number) ^ 1;
    assert.throws(() => authenticate(changed), ProtocolError);
  }
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 42, maxLength: 200 }), (noise) => {
      assert.throws(() => authenticate(Buffer.from(noise)), ProtocolError);
    }),
  );
});

test("clocks may differ by 120 s; a request is good once", () => {
  for (const [skew, fine] of [
    [-121, false],
    [-120, true],
    [120, true],
    [121, false],
  ] as const) {
    let now = 0;
    const memory = new RequestMemory(() => now);
    now = 120_000; // older requests than the memory are refused, see below
    const guard = new RequestGuard(() => (TIME + skew) * 1000, memory);
    if (!fine) assert.throws(() => authenticate(hex(WIRE), guard), /clock differs/);
    else {
      assert.notEqual(authenticate(hex(WIRE), guard), null);
      assert.throws(() => authenticate(hex(WIRE), guard), /made before/);
    }
  }
  // The same session under another AuthID.
  const guard = new RequestGuard(() => TIME * 1000, new RequestMemory());
  authenticate(hex(WIRE), guard);
  const again = header.sealRequest(KEY, REQUEST, { ...CHANCE, authRandom: hex("ffffffff") });
  assert.throws(() => authenticate(again, guard), /made before/);
});

test("a request from before the memory began is refused, whatever the clock is set to later", () => {
  let now = 5_000;
  const memory = new RequestMemory(() => now);
  const at = (seconds: number) => new RequestGuard(() => (TIME + seconds) * 1000, memory);
  assert.throws(() => authenticate(hex(WIRE), at(1)), /before this server started/);
  now += 50_000;
  assert.throws(() => authenticate(hex(WIRE), at(51)), /before this server started/);
  assert.notEqual(authenticate(hex(WIRE), at(50)), null);
});

test("what cannot be asked for", () => {
  const ask = (change: Partial<header.RequestHeader>) =>
    authenticate(header.sealRequest(KEY, { ...REQUEST, ...change }, CHANCE));
  assert.throws(() => ask({ security: 1 }), ProtocolError);
  assert.throws(() => ask({ command: 9 }), ProtocolError);
  assert.throws(() => ask({ command: header.COMMAND_UDP, options: 0 }), ProtocolError);
  assert.equal(ask({ command: header.COMMAND_MUX, destination: null })?.request.destination, null);
});

test("a response to another request is refused; chunks that lie are, too", () => {
  const client = new VmessCodec(REQUEST, EMPTY);
  const other = new VmessCodec({ ...REQUEST, verifier: 0x56 }, null).seal(Buffer.from("x"));
  assert.throws(() => collect(client, other), ProtocolError);
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 20, maxLength: 60 }), (noise) => {
      const server = new VmessCodec({ ...REQUEST, options: 0x11 }, null);
      assert.throws(() => collect(server, Buffer.from(noise)), ProtocolError);
    }),
    { numRuns: runs(30) },
  );
  assert.throws(() => new VmessCodec(REQUEST, EMPTY).openEnd(), /clocks/);
});

test("alterId above 0 is read, for the AEAD header is sent all the same; twins are refused", () => {
  const node = { server: "a", port: 1, uuid: UUID };
  for (const alterId of [0, 64, "64"])
    assert.equal(outboundSchema.safeParse({ ...node, alterId }).success, true);
  assert.equal(outboundSchema.safeParse({ ...node, alterId: -1 }).success, false);
  assert.equal(inboundSchema.safeParse({ users: [{ uuid: UUID, alterId: 4 }] }).success, true);
  const twins = ["ada", "bob"].map((id) => ({ id, credential: UUID, flow: null }));
  assert.throws(() => vmessUsers(twins, "listener x"), ConfigError);
});

test("chunks of a stream that are whole come in one piece, also before a fault; datagrams one by one", () => {
  const pieces = (command: number): string[] => {
    const request = { ...REQUEST, command };
    const client = new VmessCodec(request, EMPTY);
    const server = new VmessCodec(request, null);
    const got: string[] = [];
    const emit = (plain: Buffer | null) => void got.push(String(plain));
    server.open(Buffer.concat(["a", "b"].map((text) => client.seal(Buffer.from(text)))), emit);
    const faulty = Buffer.concat(["c", "d"].map((text) => client.seal(Buffer.from(text))));
    faulty[faulty.length - 1] = (faulty.at(-1) as number) ^ 1;
    assert.throws(() => server.open(faulty, emit), ProtocolError);
    client.close();
    server.close();
    return got;
  };
  assert.deepEqual(pieces(header.COMMAND_TCP), ["ab", "c"]);
  assert.deepEqual(pieces(header.COMMAND_UDP), ["a", "b", "c"]);
});
