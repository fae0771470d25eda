import assert from "node:assert/strict";
import { test } from "node:test";
import { ProtocolError } from "#core/errors.ts";
import { ReplayFilter } from "#protocols/crypto/replay-filter.ts";
import { type Request } from "./server-handshake.ts";
import { serverKeys } from "./server-keys.ts";
import { Sip022ClientCodec, Sip022ServerCodec } from "./sip022.ts";
import {
  method,
  ADDRESS,
  PSK,
  SALT,
  EMPTY,
  fixedChance,
  collect,
  CHANCE,
  request,
  clientFor,
} from "../../../test/support/shadowsocks-codecs.ts";

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

test("2022: the first payload is as long as the header allows, the rest follows", () => {
  const aes = method("2022-blake3-aes-128-gcm");
  const keys = serverKeys(aes, PSK.toString("base64"), null);
  const client = clientFor(aes.name, PSK.toString("base64"));
  const sent = Buffer.alloc(140_000, "xyz");
  const got = request(keys, client.seal(sent)) as Request;
  assert.ok(got.payload.equals(sent));
  assert.ok(got.codec instanceof Sip022ServerCodec);
});
