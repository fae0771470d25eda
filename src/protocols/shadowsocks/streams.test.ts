import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ConfigError, ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { toDestination } from "#net/address/ip.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { openAead } from "#protocols/crypto/aead.ts";
import { ReplayFilter } from "#protocols/crypto/replay-filter.ts";
import { runs } from "../../../test/support/runs.ts";
import { ChunkSealer, MAX_CHUNK } from "./chunks.ts";
import {
  findMethod,
  keyName,
  masterKey,
  METHOD_NAMES,
  type Method,
  preSharedKeys,
  sessionSubkey,
  sip004Subkey,
} from "./methods.ts";
import { plainCodec } from "./plain.ts";
import { type Request, serverHandshake } from "./server-handshake.ts";
import { type ServerKeys, serverKeys } from "./server-keys.ts";
import { Sip004Codec } from "./sip004.ts";
import { type Chance, chanceBy, Sip022ClientCodec, Sip022ServerCodec } from "./sip022.ts";
import { streamIdentities } from "./identity.ts";
import { UnauthenticatedCodec } from "./stream-codec.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const method = (name: string) => findMethod(name) as Method;
const TARGET = toDestination("example.com", 80);
const ADDRESS = encodeSocksAddress(TARGET);
const PSK = hex("00112233445566778899aabbccddeeff");
const SALT = hex("000102030405060708090a0b0c0d0e0f");
const EMPTY = Buffer.alloc(0);

function fixedChance(salt: Buffer, unixSeconds: number, padding = 3): Chance {
  return { salt: () => salt, padding: () => Buffer.alloc(padding), nowMs: () => unixSeconds * 1000 };
}
/** One that is older than the oldest request. */
function filter(): ReplayFilter {
  let now = 0;
  const salts = new ReplayFilter({ capacity: 1000, windowMs: 60_000, now: () => now });
  now = 30_000;
  return salts;
}

function collect(codec: StreamCodec, wire: Buffer): Buffer {
  const got: Buffer[] = [];
  codec.open(wire, (plain) => got.push(plain as Buffer));
  return Buffer.concat(got);
}

const CHANCE = chanceBy(Date.now);

function request(keys: ServerKeys, wire: Buffer, chance: Chance = CHANCE, salts = filter()): Request | null {
  const arrived = new ByteQueue();
  arrived.push(wire);
  const got = serverHandshake(keys, salts, chance)(arrived);
  return got === null
    ? null
    : { ...got, payload: Buffer.concat([got.payload, collect(got.codec, arrived.takeAll())]) };
}

describe("published values", () => {
  test("keys of the AEAD ciphers", () => {
    const aes = method("aes-128-gcm");
    const master = masterKey(aes, "test");
    assert.equal(master.toString("hex"), "098f6bcd4621d373cade4e832627b4f6");
    assert.equal(sip004Subkey(master, SALT).toString("hex"), "96b249baa3b4e00f502f84a5a90ac784");
    const chacha = masterKey(method("chacha20-poly1305"), "test");
    assert.equal(chacha.toString("hex"), "098f6bcd4621d373cade4e832627b4f60a9172716ae6428409885b8b829ccb05");
    const salt = Buffer.from(Array.from({ length: 32 }, (_, at) => at));
    assert.equal(
      sip004Subkey(chacha, salt).toString("hex"),
      "0205fa486aabee35ab86fc1fa015f3a9fc5c8ce7657db427d9ba55b49e718953",
    );
  });

  test("aes-128-gcm: first bytes", () => {
    const aes = method("aes-128-gcm");
    const codec = new Sip004Codec({
      method: aes,
      master: masterKey(aes, "test"),
      request: ADDRESS,
      salt: SALT,
    });
    const wire = codec.seal(Buffer.from("GET"));
    assert.deepEqual(
      wire,
      hex(
        "000102030405060708090a0b0c0d0e0f c44edd8c6502579a7eef55266cbea0c2004e 6777e8764c1de50dd58d912b2cadd541749c9a5968b1a3e55ec9b6a58c72dcdbb8c2",
      ),
    );
  });

  test("2022-blake3-aes-128-gcm: request and response", () => {
    const aes = method("2022-blake3-aes-128-gcm");
    assert.equal(sessionSubkey(PSK, SALT).toString("hex"), "4794488b91286957affb6226ce4ec043");
    const client = new Sip022ClientCodec({
      method: aes,
      keys: [PSK],
      address: ADDRESS,
      chance: fixedChance(SALT, 1700000000),
    });
    const wire = client.seal(Buffer.from("GET"));
    assert.deepEqual(
      wire,
      hex(
        "000102030405060708090a0b0c0d0e0fa50d5b72b342237120d2289d73e2fa0849497a916a1be3d7c4421b66740a9674fa429a4c9ef1b6fb5cec819f5869f270ea71f2708ba35b8b53561549a15ef346a898",
      ),
    );
    const keys = serverKeys(aes, PSK.toString("base64"), null);
    const got = request(keys, wire, fixedChance(hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"), 1700000001));
    assert.deepEqual(got?.destination, TARGET);
    assert.equal(got?.payload.toString(), "GET");
    const reply = got?.codec.seal(Buffer.from("OK")) as Buffer;
    assert.deepEqual(
      reply,
      hex(
        "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeffc31af1f2b0706698a76c119c3b0353158ac86c7578834b18f4b9e5ac635701fd28777a46f4a2a3702fe7334af2914bb8f09f5868b1a564f5d5cb5eb94a",
      ),
    );
    assert.equal(collect(client, reply).toString(), "OK");
  });

  test("identity headers", () => {
    const user = hex("ffeeddccbbaa99887766554433221100");
    assert.equal(keyName(user).toString("hex"), "f80624f59dc85caa1b36d473daf33dd0");
    assert.equal(streamIdentities([PSK, user], SALT).toString("hex"), "9c5421de3f4e614c2c77cd39679aa6f7");
  });
});

function passwordFor(name: string): string {
  const { edition, keyBytes } = method(name);
  return edition === "2022" ? Buffer.alloc(keyBytes, 9).toString("base64") : "pass word";
}

function clientFor(name: string, password = passwordFor(name)): StreamCodec {
  const found = method(name);
  if (found.edition === "plain") return plainCodec(ADDRESS);
  if (found.stream !== undefined)
    return new UnauthenticatedCodec({
      cipher: found.stream,
      master: masterKey(found, password),
      request: ADDRESS,
      salts: filter(),
    });
  if (found.edition === "sip004")
    return new Sip004Codec({
      method: found,
      master: masterKey(found, password),
      request: ADDRESS,
      salts: filter(),
    });
  return new Sip022ClientCodec({
    method: found,
    keys: preSharedKeys(found, password),
    address: ADDRESS,
    chance: CHANCE,
  });
}

for (const name of METHOD_NAMES) {
  describe(name, () => {
    const keys = serverKeys(method(name), passwordFor(name), null);

    test("both ways, 200 KiB, whole and byte by byte", () => {
      const client = clientFor(name);
      const sent = Buffer.alloc(200_000, "abcdefg");
      const wire = Buffer.concat([client.seal(sent.subarray(0, 70_000)), client.seal(sent.subarray(70_000))]);
      const got = request(keys, wire) as Request;
      assert.deepEqual(got.destination, TARGET);
      assert.ok(got.payload.equals(sent));
      const reply = Buffer.concat([got.codec.seal(sent), got.codec.seal(Buffer.from("!"))]);
      assert.ok(collect(client, reply).equals(Buffer.concat([sent, Buffer.from("!")])));

      const other = clientFor(name);
      const short = Buffer.concat([
        other.seal(EMPTY),
        other.seal(Buffer.from("one")),
        other.seal(Buffer.from("two")),
      ]);
      const arrived = new ByteQueue();
      const step = serverHandshake(keys, filter(), CHANCE);
      let opened: Request | null = null;
      let text = "";
      for (const byte of short) {
        if (opened !== null) text += collect(opened.codec, Buffer.from([byte]));
        else {
          arrived.push(Buffer.from([byte]));
          opened = step(arrived);
        }
      }
      assert.equal(text, "onetwo");
    });

    test("every truncation waits, or says so at the end", () => {
      const wire = clientFor(name).seal(Buffer.from("payload"));
      const chunked = method(name).edition === "sip004" || method(name).edition === "2022";
      for (let size = 0; size < wire.length; size++) {
        const got = request(keys, wire.subarray(0, size));
        if (chunked || size < wire.length - "payload".length) assert.equal(got, null);
      }
      const client = clientFor(name);
      const got = request(keys, client.seal(Buffer.from("x"))) as Request;
      const reply = got.codec.seal(Buffer.from("reply"));
      collect(client, reply.subarray(0, -1));
      if (chunked) assert.throws(() => client.openEnd(), ProtocolError);
    });

    test("an opening without payload, and its end", () => {
      const wire = clientFor(name).sealEnd() as Buffer;
      const got = request(keys, wire);
      assert.deepEqual(got?.destination, TARGET);
      assert.equal(got?.payload.length, 0);
    });

    if (method(name).edition === "plain") return;

    test("a salt is good once", () => {
      const wire = clientFor(name).seal(Buffer.from("x"));
      const salts = filter();
      assert.notEqual(request(keys, wire, CHANCE, salts), null);
      assert.throws(() => request(keys, wire, CHANCE, salts), ProtocolError);
    });

    if (method(name).edition === "stream") {
      test("noise, and what others have changed, throw nothing but ProtocolError", () => {
        const refusedOrRead = (wire: Buffer) => {
          try {
            request(keys, wire);
          } catch (error) {
            assert.ok(error instanceof ProtocolError, String(error));
          }
        };
        const wire = clientFor(name).seal(Buffer.from("x"));
        for (let at = 0; at < wire.length; at++) {
          const changed = Buffer.from(wire);
          changed[at] = (changed[at] as number) ^ 1;
          refusedOrRead(changed);
        }
        fc.assert(
          fc.property(fc.uint8Array({ maxLength: 300 }), (noise) => refusedOrRead(Buffer.from(noise))),
        );
      });
      test("the stream of a server may not end within its IV", () => {
        const client = clientFor(name);
        collect(client, Buffer.alloc(3));
        assert.throws(() => client.openEnd(), ProtocolError);
      });
      return;
    }

    test("any changed bit is refused or waits; so is noise", () => {
      const wire = clientFor(name).seal(Buffer.from("x"));
      for (let at = 0; at < wire.length; at++) {
        const changed = Buffer.from(wire);
        changed[at] = (changed[at] as number) ^ 1;
        assert.throws(() => request(keys, changed), ProtocolError, `byte ${at}`);
      }
      fc.assert(
        fc.property(fc.uint8Array({ minLength: 100, maxLength: 300 }), (noise) => {
          assert.throws(() => request(keys, Buffer.from(noise)), ProtocolError);
        }),
        { numRuns: runs(30) },
      );
    });
  });
}

test("a chunk may be empty: it says nothing", () => {
  const aes = method("aes-128-gcm");
  const subkey = sip004Subkey(masterKey(aes, "pass word"), SALT);
  using sealer = new ChunkSealer(openAead(aes.aead, subkey), MAX_CHUNK.sip004);
  const wire = Buffer.alloc(300);
  let end = sealer.chunksInto(wire, SALT.copy(wire), ADDRESS);
  for (const part of [Buffer.alloc(2), EMPTY]) end = sealer.partInto(wire, end, part);
  end = sealer.chunksInto(wire, end, Buffer.from("late"));
  const keys = serverKeys(aes, "pass word", null);
  assert.equal(request(keys, wire.subarray(0, end))?.payload.toString(), "late");
});

test("2022: clocks may differ by 30 s", () => {
  const aes = method("2022-blake3-aes-128-gcm");
  const keys = serverKeys(aes, PSK.toString("base64"), null);
  for (const [skew, fine] of [
    [-31, false],
    [-30, true],
    [30, true],
    [31, false],
  ] as const) {
    const client = new Sip022ClientCodec({
      method: aes,
      keys: [PSK],
      address: ADDRESS,
      chance: fixedChance(SALT, 1000 + skew),
    });
    const wire = client.seal(EMPTY);
    if (fine) assert.notEqual(request(keys, wire, fixedChance(SALT, 1000)), null);
    else assert.throws(() => request(keys, wire, fixedChance(SALT, 1000)), ProtocolError);
  }
});

test("2022: a request from before the memory of salts began is refused", () => {
  const aes = method("2022-blake3-aes-128-gcm");
  const keys = serverKeys(aes, PSK.toString("base64"), null);
  const ask = (seconds: number) =>
    new Sip022ClientCodec({
      method: aes,
      keys: [PSK],
      address: ADDRESS,
      chance: fixedChance(SALT, seconds),
    }).seal(EMPTY);
  let now = 0;
  const salts = new ReplayFilter({ capacity: 10, windowMs: 60_000, now: () => now });
  now = 10_000;
  assert.throws(() => request(keys, ask(989), fixedChance(SALT, 1000), salts), /before this server started/);
  assert.notEqual(request(keys, ask(990), fixedChance(SALT, 1000), salts), null);
});

test("2022: a response to another request is refused, and so is a request as response", () => {
  const aes = method("2022-blake3-aes-128-gcm");
  const keys = serverKeys(aes, PSK.toString("base64"), null);
  const one = clientFor(aes.name, PSK.toString("base64"));
  const two = clientFor(aes.name, PSK.toString("base64"));
  const got = request(keys, one.seal(Buffer.from("x"))) as Request;
  const wire = two.seal(Buffer.from("y"));
  assert.throws(() => collect(two, got.codec.seal(Buffer.from("z"))), ProtocolError);
  assert.throws(() => collect(one, wire), ProtocolError);
});

test("2022: neither padding nor payload is refused", () => {
  const aes = method("2022-blake3-aes-128-gcm");
  const client = new Sip022ClientCodec({
    method: aes,
    keys: [PSK],
    address: ADDRESS,
    chance: fixedChance(SALT, 1000, 0),
  });
  const keys = serverKeys(aes, PSK.toString("base64"), null);
  assert.throws(() => request(keys, client.seal(EMPTY), fixedChance(SALT, 1000)), ProtocolError);
});

test("users are told apart by trial (AEAD) and by identity header (2022)", () => {
  const key = (fill: number) => Buffer.alloc(32, fill).toString("base64");
  const users = [
    { id: "ada", credential: key(1), flow: null },
    { id: "bob", credential: key(2), flow: null },
  ];
  for (const name of ["aes-256-gcm", "2022-blake3-aes-256-gcm"]) {
    const modern = name.startsWith("2022");
    const keys = serverKeys(method(name), modern ? key(9) : "", users);
    const password = modern ? `${key(9)}:${key(2)}` : key(2);
    const client = clientFor(name, password);
    const got = request(keys, client.seal(Buffer.from("hi"))) as Request;
    assert.equal(got.user, "bob");
    assert.equal(collect(client, got.codec.seal(Buffer.from("yes"))).toString(), "yes");
    const unknownClient = clientFor(name, modern ? `${key(9)}:${key(3)}` : key(3));
    assert.throws(() => request(keys, unknownClient.seal(Buffer.from("hi"))), ProtocolError);
    assert.throws(
      () => serverKeys(method(name), key(9), [...users, { ...users[0]!, id: "eve" }]),
      ConfigError,
    );
  }
});

test("2022: two levels of server keys", () => {
  const aes = method("2022-blake3-aes-128-gcm");
  const [top, middle, user] = [1, 2, 3].map((fill) => Buffer.alloc(16, fill)) as [Buffer, Buffer, Buffer];
  const wire = new Sip022ClientCodec({
    method: aes,
    keys: [top, middle, user],
    address: ADDRESS,
    chance: CHANCE,
  }).seal(EMPTY);
  // What a relay does: it takes off its own block, and the next server finds its key and the user's.
  const relayed = Buffer.concat([wire.subarray(0, 16), wire.subarray(32)]);
  const keys = serverKeys(aes, middle.toString("base64"), [
    { id: "u", credential: user.toString("base64"), flow: null },
  ]);
  assert.equal(request(keys, relayed)?.user, "u");
});

test("keys and names that cannot be right", () => {
  const aes = method("2022-blake3-aes-128-gcm");
  for (const password of ["", "short", "AAAA", Buffer.alloc(32).toString("base64")])
    assert.throws(() => serverKeys(aes, password, null), ConfigError);
  const chacha = method("2022-blake3-chacha20-poly1305");
  const key = Buffer.alloc(32).toString("base64");
  assert.throws(() => preSharedKeys(chacha, `${key}:${key}`), ConfigError);
  assert.throws(() => serverKeys(chacha, key, []), ConfigError);
  assert.throws(() => serverKeys(method("none"), "", []), ConfigError);
  assert.equal(findMethod("rc4-md5-6"), null);
  assert.equal(findMethod("AEAD_AES_128_GCM")?.name, "aes-128-gcm");
});

test("2022: the first payload is as long as the header allows, the rest follows", () => {
  const aes = method("2022-blake3-aes-128-gcm");
  const keys = serverKeys(aes, PSK.toString("base64"), null);
  const client = clientFor(aes.name, PSK.toString("base64"));
  const sent = Buffer.alloc(140_000, "xyz");
  const got = request(keys, client.seal(sent)) as Request;
  assert.ok(got.payload.equals(sent));
  assert.ok(got.codec instanceof Sip022ServerCodec);
});

for (const name of ["aes-128-gcm", "chacha20-ietf-poly1305", "xchacha20-ietf-poly1305"])
  test(`${name}: what is whole comes in one piece, also before a fault; nothing after it, nor after the end`, () => {
    const from = new Sip004Codec({
      method: method(name),
      master: masterKey(method(name), "x"),
      request: EMPTY,
    });
    const to = new Sip004Codec({
      method: method(name),
      master: masterKey(method(name), "x"),
      request: EMPTY,
    });
    const pieces: string[] = [];
    const emit = (plain: Buffer) => void pieces.push(plain.toString());
    to.open(Buffer.concat(["a", "b", "c"].map((text) => from.seal(Buffer.from(text)))), emit);
    const faulty = Buffer.concat(["d", "e", "f"].map((text) => from.seal(Buffer.from(text))));
    const at = faulty.length - 40; // in what "e" became
    faulty[at] = (faulty[at] as number) ^ 1;
    assert.throws(() => to.open(faulty, emit), ProtocolError);
    assert.deepEqual(pieces, ["abc", "d"]);
    to.close();
    from.close();
    assert.throws(() => to.open(from.seal(Buffer.from("g")), emit));
    assert.deepEqual(pieces, ["abc", "d"]);
  });
