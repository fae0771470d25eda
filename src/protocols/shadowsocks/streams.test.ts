import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ConfigError, ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { openAead } from "#protocols/crypto/aead.ts";
import { runs } from "../../../test/support/runs.ts";
import { ChunkSealer, MAX_CHUNK } from "./chunks.ts";
import { findMethod, masterKey, METHOD_NAMES, preSharedKeys, sip004Subkey } from "./methods.ts";
import { type Request, serverHandshake } from "./server-handshake.ts";
import { serverKeys } from "./server-keys.ts";
import { Sip004Codec } from "./sip004.ts";
import {
  method,
  TARGET,
  ADDRESS,
  SALT,
  EMPTY,
  filter,
  collect,
  CHANCE,
  request,
  passwordFor,
  clientFor,
} from "../../../test/support/shadowsocks-codecs.ts";

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
