import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parse } from "yaml";
import { GOOD_CONFIG } from "../../test/support/broken-configs.ts";
import { testEnv } from "../../test/support/config-env.ts";
import { configSchema } from "./schema.ts";

const schema = configSchema(testEnv().registries);
const validate = new Ajv2020({
  strict: false,
  allErrors: true,
  validateFormats: false,
  allowUnionTypes: true,
}).compile(schema);

function faults(text: string): readonly string[] {
  return validate(parse(text, { merge: true }))
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

test("the JSON Schema admits what the parser admits", () => {
  assert.deepEqual(faults(GOOD_CONFIG), []);
  assert.deepEqual(faults("mixed-port: 7890\nsecret: 0123\nunknown: {a: 1}\n"), []);
  assert.deepEqual(
    faults("proxies: [{name: a, type: ssh, private-key: x}]\ndns: {nameserver: 1.1.1.1}\n"),
    [],
  );
  assert.deepEqual(
    faults("tunnels: ['tcp,:1,a:2', {network: tcp, address: ':1', target: 'a:2'}]\nsub-rules: {a: [x]}\n"),
    [],
  );
});

test("the JSON Schema refuses wrong words, wrong types and missing keys", () => {
  const bad = [
    "mode: 5",
    "tun: {stack: none}",
    "dns: []",
    "proxies: [{name: a, type: vless, server: s}]",
    "proxies: [{name: a, type: sokcs5}]",
    "mixed-port: 70000",
    "rule-providers: {r: {type: http}}",
  ];
  for (const text of bad) assert.notDeepEqual(faults(text), [], text);
});

test("the JSON Schema tells types apart and marks secrets and files", () => {
  const text = JSON.stringify(schema);
  const marks = [
    '"const":"vless"',
    '"x-weir-file":true',
    '"format":"password"',
    '"kernel-direct-max-entries"',
  ];
  for (const mark of marks) assert.ok(text.includes(mark), mark);
});
