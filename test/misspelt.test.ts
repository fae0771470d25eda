/** A misspelt word is answered with the one that was probably meant, wherever the file takes one of a few words. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { z } from "zod";
import { groupFields } from "#config/group-fields.ts";
import { listenerFields } from "#config/listener-fields.ts";
import { parseConfig } from "#config/parse.ts";
import { proxyFields } from "#config/proxy-fields.ts";
import { formatDiagnostic } from "#config/report.ts";
import { TOP_LEVEL } from "#config/sections/index.ts";
import { tunListenerFields } from "#config/tun-listeners.ts";
import { tunnelFields } from "#config/tunnels.ts";
import { REGISTRIES } from "#cli/parse-env.ts";
import { proxy } from "./support/config-texts.ts";
import { testEnv } from "./support/config-env.ts";

const SHADOWSOCKS = "name: a, type: ss, server: s, port: 1, password: x";

for (const [key, text, message] of [
  [
    "cipher",
    proxy(`${SHADOWSOCKS}, cipher: aes-128-gcn`),
    /^2:66 proxies\[0\]\.cipher: .*got aes-128-gcn; did you mean "aes-128-gcm"\?$/,
  ],
  [
    "cipher of a listener",
    "listeners:\n  - {name: l, type: shadowsocks, port: 1, password: x, cipher: chacha20-ietf-poly130}\n",
    /^2:64 listeners\[0\]\.cipher: .*; did you mean "chacha20-ietf-poly1305"\?; the listener is left out$/,
  ],
  [
    "plugin",
    proxy(`${SHADOWSOCKS}, cipher: none, plugin: v2ray-plugn`),
    /^2:80 proxies\[0\]\.plugin: .*got v2ray-plugn; did you mean "v2ray-plugin"\?; the node stays and cannot be dialled$/,
  ],
  [
    "plugin mode",
    proxy(`${SHADOWSOCKS}, cipher: none, plugin: obfs, plugin-opts: {mode: htp}`),
    /^2:106 proxies\[0\]\.plugin-opts\.mode: .*needs mode http or tls; did you mean "http"\?$/,
  ],
  [
    "flow",
    proxy("name: a, type: vless, server: s, port: 1, uuid: u, flow: xtls-rprx-visoin"),
    /^2:\d+ proxies\[0\]\.flow: .*got xtls-rprx-visoin; did you mean "xtls-rprx-vision"\?/,
  ],
  [
    "network of a rule",
    "rules: ['NETWORK,tpc,DIRECT']\n",
    /^1:9 rules\[0\]: .*write tcp or udp; did you mean "tcp"\?$/,
  ],
] as const)
  test(`a misspelt ${key} is reported with its position and the right word`, () => {
    const { errors = [], warnings } = parseConfig(text, testEnv({ registries: REGISTRIES }));
    const [said] = [...errors, ...warnings].map((item) => formatDiagnostic("c", item).slice(2));
    assert.match(said ?? "", message);
  });

/** Every scalar of the schemas that lists its words. */
function* enumerations(schema: z.core.$ZodType, path: string): Generator<readonly [string, z.ZodType]> {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === "object")
    for (const [key, item] of Object.entries(def.shape)) yield* enumerations(item, `${path}.${key}`);
  else if (def.type === "array") yield* enumerations(def.element, `${path}[]`);
  else if (def.type === "record") yield* enumerations(def.valueType, `${path}.*`);
  else if (def.type === "union") for (const option of def.options) yield* enumerations(option, path);
  else if (def.type === "pipe") {
    yield* enumerations(def.in, path);
    yield* enumerations(def.out, path);
  } else if ("innerType" in def) yield* enumerations(def.innerType, path);
  else if (wordsOf(schema as z.ZodType) !== null) yield [path, schema as z.ZodType];
}

function wordsOf(schema: z.ZodType): readonly string[] | null {
  return (schema.meta()?.["enum"] as readonly string[] | undefined) ?? null;
}

test("no list of words in any section, node, listener or group is without a hint", () => {
  const schemas: (readonly [string, z.core.$ZodType])[] = [
    ...Object.entries(TOP_LEVEL),
    ["proxies", proxyFields],
    ["listeners", listenerFields],
    ["listeners tun", tunListenerFields],
    ["proxy-groups", groupFields],
    ["tunnels", tunnelFields],
    ...REGISTRIES.groupKinds.map(({ type, schema }) => [`proxy-groups ${type}`, schema] as const),
  ];
  for (const { type, inbound, outbound } of REGISTRIES.protocols) {
    if (outbound !== undefined) schemas.push([`proxies ${type}`, outbound.schema]);
    if (inbound !== undefined) schemas.push([`listeners ${type}`, inbound.schema]);
  }
  const found = schemas.flatMap(([path, schema]) => [...enumerations(schema, path)]);
  assert.ok(found.length > 40, `only ${found.length} were found`);
  for (const [path, schema] of found) {
    const word = wordsOf(schema)?.find(({ length }) => length > 1) as string;
    const message = schema.safeParse(`${word}x`).error?.issues[0]?.message ?? "taken";
    assert.match(message, /; did you mean "/, `${path}: ${word}x: ${message}`);
  }
});
