/** Configurations of Encrypted ClientHello and their keys, as bytes and as text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, ProtocolError } from "#core/errors.ts";
import {
  encodeEchConfig,
  encodeEchConfigs,
  isPublicName,
  parseEchConfigText,
  readEchConfigs,
} from "./config.ts";
import { echKeyMaterial } from "./generate.ts";
import { generateEchKeyPair, parseEchKeys } from "./keys.ts";

const PUBLIC = "public.example.net";
const pair = generateEchKeyPair(PUBLIC);
const keys = parseEchKeys(pair.key, "listener l: ech-key");
const configs = Buffer.from(pair.config, "base64");
const [config = assert.fail()] = readEchConfigs(configs);

test("lists: what cannot be used is passed over, what is malformed is refused", () => {
  const { publicKey } = config;
  const good = encodeEchConfig({ id: 3, publicKey, publicName: PUBLIC });
  const unknown = Buffer.concat([Buffer.from("fe0e0003aabbcc", "hex")]);
  const single = encodeEchConfig({ id: 4, publicKey, publicName: "localhost" });
  const address = encodeEchConfig({ id: 5, publicKey, publicName: "127.0.0.1" });
  const mandatory = Buffer.concat([good.subarray(0, -2), Buffer.from("00048001", "hex"), Buffer.alloc(2)]);
  mandatory.writeUInt16BE(mandatory.length - 4, 2);
  const list = encodeEchConfigs([unknown, single, address, mandatory, good]);
  assert.deepEqual(
    readEchConfigs(list).map(({ id, raw }) => [id, raw.equals(good)]),
    [[3, true]],
  );
  assert.deepEqual(readEchConfigs(encodeEchConfigs([unknown])), []);
  for (let size = 0; size < list.length; size++)
    assert.throws(() => readEchConfigs(list.subarray(0, size)), ProtocolError, `${size} bytes`);
  assert.throws(() => readEchConfigs(Buffer.concat([list, Buffer.of(0)])), ProtocolError);
  for (const name of [
    "",
    "a",
    "-a.org",
    "a..org",
    "a.org.",
    "1.2.3.4",
    "a.0x1",
    "a b.org",
    `${"a".repeat(64)}.org`,
  ])
    assert.equal(isPublicName(name), false, name);
  for (const name of ["a.org", "A-1.b2.org"]) assert.equal(isPublicName(name), true, name);
});

test("the text of a configuration, and keys in PEM", () => {
  assert.deepEqual(parseEchConfigText(pair.config, "w"), configs);
  const example =
    "AEn+DQBFKwAgACABWIHUGj4u+PIggYXcR5JF0gYk3dCRioBW8uJq9H4mKAAIAAEAAQABAANAEnB1YmxpYy50bHMtZWNoLmRldgAA";
  const [known] = readEchConfigs(parseEchConfigText(example, "w"));
  assert.deepEqual([known?.id, known?.publicName, known?.maxNameBytes], [43, "public.tls-ech.dev", 64]);
  for (const text of ["%", "AAAA", example.slice(4), `${example}AAAA`])
    assert.throws(() => parseEchConfigText(text, "proxy n: ech-opts.config"), ConfigError, text);

  const [key = assert.fail()] = keys;
  assert.deepEqual([keys.length, key.config.publicName, key.config.aeads], [1, PUBLIC, [1, 2, 3]]);
  const body = Buffer.from(pair.key.replaceAll(/-----.*-----|\s/g, ""), "base64");
  const pem = (bytes: Buffer): string =>
    `-----BEGIN ECH KEYS-----\n${bytes.toString("base64")}\n-----END ECH KEYS-----\n`;
  assert.equal(parseEchKeys(pem(Buffer.concat([body, body])), "w").length, 2);
  for (let size = 0; size < body.length; size++)
    assert.throws(
      () => parseEchKeys(pem(body.subarray(0, size)), "listener l: ech-key"),
      /listener l: ech-key/,
    );
  const other = Buffer.from(body);
  other[5] = (other[5] ?? 0) ^ 1;
  assert.throws(() => parseEchKeys(pem(other), "w"), ConfigError, "a key that is not the configuration's");
  assert.throws(
    () => parseEchKeys(`x${pair.config}`, "w"),
    (error: Error) => !error.message.includes(pair.config),
  );
});

test("weir generate ech-keypair prints both ends in YAML", () => {
  const text = echKeyMaterial.make(PUBLIC);
  const listText = /config: (\S+) \}/.exec(text)?.[1] ?? assert.fail(text);
  const [made] = readEchConfigs(parseEchConfigText(listText, "w"));
  const [key] = parseEchKeys(text.replaceAll(/^ +/gm, ""), "w");
  assert.deepEqual([made?.publicName, key?.config.raw], [PUBLIC, made?.raw]);
  assert.throws(() => echKeyMaterial.make("localhost"), ConfigError);
});
