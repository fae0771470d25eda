import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { keyName, masterKey, sessionSubkey, sip004Subkey } from "./methods.ts";
import { serverKeys } from "./server-keys.ts";
import { Sip004Codec } from "./sip004.ts";
import { Sip022ClientCodec } from "./sip022.ts";
import { streamIdentities } from "./identity.ts";
import {
  hex,
  method,
  TARGET,
  ADDRESS,
  PSK,
  SALT,
  fixedChance,
  collect,
  request,
} from "../../../test/support/shadowsocks-codecs.ts";

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
