import assert from "node:assert/strict";
import { test } from "node:test";
import { inboundSchema, outboundSchema } from "./options.ts";

const key = Buffer.alloc(16, 7).toString("base64");
const node = { server: "a", port: 1, cipher: "aes-128-gcm", password: "x" };

function problems(schema: typeof inboundSchema | typeof outboundSchema, value: object): string[] {
  const issues = schema.safeParse(value).error?.issues ?? [];
  return issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
}

test("nodes", () => {
  assert.deepEqual(problems(outboundSchema, node), []);
  assert.equal(
    outboundSchema.parse({ ...node, cipher: "AEAD_CHACHA20_POLY1305" }).cipher,
    "chacha20-ietf-poly1305",
  );
  assert.match(
    problems(outboundSchema, { ...node, cipher: "rc4-md5-6" })[0] as string,
    /^cipher: rc4-md5-6 is not in this build/,
  );
  assert.match(
    problems(outboundSchema, { ...node, cipher: "nonsense" })[0] as string,
    /^cipher: expected one of none, aes-128/,
  );
  const modern = { ...node, cipher: "2022-blake3-aes-128-gcm" };
  assert.match(problems(outboundSchema, modern)[0] as string, /^password: .*16 bytes as base64/);
  assert.deepEqual(problems(outboundSchema, { ...modern, password: `${key}:${key}` }), []);
});

test("plugins and their modes", () => {
  for (const [plugin, mode, fine] of [
    ["obfs", "http", true],
    ["obfs", "tls", true],
    ["obfs", "websocket", false],
    ["v2ray-plugin", "websocket", true],
    ["v2ray-plugin", "quic", false],
  ] as const)
    assert.equal(problems(outboundSchema, { ...node, plugin, "plugin-opts": { mode } }).length === 0, fine);
  assert.match(
    problems(outboundSchema, { ...node, plugin: "obfs" })[0] as string,
    /^plugin-opts.mode: obfs needs mode/,
  );
  assert.match(
    problems(outboundSchema, { ...node, plugin: "kcptun" })[0] as string,
    /^plugin: expected one of obfs/,
  );
});

test("listeners and their users", () => {
  const modern = { cipher: "2022-blake3-aes-128-gcm", password: key };
  assert.deepEqual(problems(inboundSchema, modern), []);
  const other = Buffer.alloc(16, 8).toString("base64");
  assert.deepEqual(inboundSchema.parse({ ...modern, users: { ada: other } }).users, [
    { id: "ada", credential: other, flow: null },
  ]);
  assert.deepEqual(problems(inboundSchema, { ...modern, users: [{ username: "ada", password: other }] }), []);
  assert.match(
    problems(inboundSchema, { ...modern, users: { ada: other, bob: other } })[0] as string,
    /same key/,
  );
  assert.deepEqual(problems(inboundSchema, { cipher: "aes-128-gcm" }), ["password: is required"]);
  assert.deepEqual(problems(inboundSchema, { cipher: "none" }), []);
});
