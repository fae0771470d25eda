/** What a start loads: docs/adr/0072. One `import` in the wrong place would load the rest of the program with it. */
import assert from "node:assert/strict";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { build } from "esbuild";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Parts that only those need who configure or ask for them. */
const LATER = [
  /^src\/api\/(?!open-controller|answering|hosts|listeners|tls|upgrade)/,
  /^src\/fleet\//,
  /^src\/acme\/(?!challenge-book)/,
  /^src\/migration\//,
  /^src\/cli\/(doctor|explain|fleet|import|generate|check|schema|backup|restore|token|audit|users)\.ts$/,
  /^src\/config\/(descriptions|describe-schema|schema\.ts)/,
  /^src\/protocols\/(vless|vmess|trojan|anytls|shadowsocks|hysteria2|tuic)\/(inbound|outbound)\.ts$/,
  /^src\/transport\/(quic|xhttp|websocket|http2|mux\/client)/,
  /^src\/dns\/upstream\/(quic|http3-client|http-client)\.ts$/,
  /node_modules\/(acme-client|axios|fastify|ajv|prom-client|ws|pg|pino)\//,
];

test("a start without nodes imports nothing of what is loaded when it is needed", async () => {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ["src/main.ts"],
    bundle: true,
    splitting: true,
    write: false,
    outdir: "unwritten",
    platform: "node",
    format: "esm",
    metafile: true,
    logLevel: "error",
  });
  const loaded = new Map<string, string>([["src/main.ts", ""]]);
  for (const [file] of loaded)
    for (const { path, kind, external } of metafile.inputs[file]?.imports ?? [])
      if (kind !== "dynamic-import" && external !== true && !loaded.has(path)) loaded.set(path, file);
  assert.ok(loaded.size > 500, "the program is there");
  const wrong = [...loaded].filter(([file]) => LATER.some((pattern) => pattern.test(file)));
  assert.deepEqual(
    wrong.map(([file, by]) => `${by} imports ${file}`),
    [],
  );
});
