/** What the wizard writes into the file is what the program takes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openParseEnv } from "#cli/parse-env.ts";
import { withEdits } from "#config/edit/index.ts";
import { parseConfig } from "#config/parse.ts";
import { SILENT } from "#core/log.ts";
import { makeKeys } from "#app/control/setup/keys.ts";
import { makeSelfSigned } from "#transport/tls/self-signed.ts";
import type { Setup } from "#ui/api/setup-types.ts";
import {
  listenerEdits,
  nodeEdits,
  RECIPE_IDS,
  removalOfListener,
  removalOfNode,
  type ListenerFields,
} from "#ui/state/recipes.ts";

const FILE = "# mine\nexternal-controller: 127.0.0.1:9090\nrules:\n  - MATCH,DIRECT # the end\n";
const SETUP: Setup = {
  listeners: [],
  nodes: [],
  groups: [{ name: "Way", members: ["DIRECT", "Oslo"] }],
  svc: null,
  acme: false,
  managed_types: ["vless", "anytls", "hysteria2", "tuic"],
};
const FIELDS: ListenerFields = {
  recipe: "reality",
  name: " front ",
  port: "8443",
  listen: "0.0.0.0",
  certificateFrom: "self-signed",
  certificate: "",
  privateKey: "",
  serverName: "www.example.org",
  email: "",
  challenge: "http-01",
  agrees: true,
  dest: "www.example.org:443",
  destName: "www.example.org",
  userName: "anna",
  publicUrl: "https://proxy.example.com",
};
const settings = { home: "/nowhere", geodataMode: false, source: null };
const parse = (text: string) => parseConfig(text, openParseEnv(settings, SILENT));
const { certificate, privateKey } = makeSelfSigned(["www.example.org"], Date.now());
const valueOf = (kind: "secret" | "password" | "key-16") => makeKeys(kind)["value"] ?? "";

for (const recipe of RECIPE_IDS)
  test(`${recipe}: the listener is taken without an error or a warning, and removed without a trace`, () => {
    const made = {
      reality: makeKeys("reality"),
      ...(["reality", "shadowsocks", "mixed"].includes(recipe)
        ? {}
        : { certificate: { certificate, private_key: privateKey } }),
      credential: valueOf(recipe === "shadowsocks" ? "key-16" : "password"),
      secret: valueOf("secret"),
    };
    const fields = { ...FIELDS, recipe };
    const text = withEdits(FILE, listenerEdits(SETUP, fields, made));
    assert.ok(text.startsWith(FILE));
    const { errors, warnings } = parse(text);
    assert.deepEqual(errors ?? [], []);
    assert.deepEqual(warnings, []);
    const svc = text.includes("svc:") ? { public_base_url: "", managed: ["front"] } : null;
    const without = withEdits(text, removalOfListener({ ...SETUP, svc }, "front"));
    assert.ok(!without.includes("front"));
    assert.equal(parse(without).errors, undefined);
  });

test("a certificate by ACME: the block comes with the first listener that asks, and once", () => {
  const fields = { ...FIELDS, recipe: "trojan", certificateFrom: "acme", email: " me@example.org " } as const;
  const made = { credential: valueOf("password") };
  const text = withEdits(FILE, listenerEdits(SETUP, fields, made));
  const { config, errors, warnings } = parse(text);
  assert.deepEqual([errors, warnings], [undefined, []]);
  assert.equal(config?.acme?.email, "me@example.org");
  const [listener] = config?.listeners ?? [];
  assert.match(JSON.stringify(listener?.options), /"acme":\["www\.example\.org"\]/);
  const more = withEdits(text, listenerEdits({ ...SETUP, acme: true }, { ...fields, name: "other" }, made));
  assert.equal(parse(more).errors, undefined);
  assert.equal(more.split("agree-tos").length, 2);
  const refused = withEdits(FILE, listenerEdits(SETUP, { ...fields, agrees: false }, made));
  assert.match(parse(refused).errors?.[0]?.message ?? "", /must be true/);
});

test("a second listener joins the svc block that is there; its address changes where it is another", () => {
  const block =
    'svc:\n  secret: "32 bytes or more, and a little more"\n  public-base-url: https://old.example.com\n  managed-listeners: [side]\nlisteners:\n  - { name: side, type: vless, port: 1, allow-insecure: true, users: [] }\n';
  const svc = { public_base_url: "https://old.example.com", managed: ["side"] };
  const text = withEdits(
    FILE + block,
    listenerEdits({ ...SETUP, svc }, FIELDS, { reality: makeKeys("reality") }),
  );
  assert.match(text, /managed-listeners: \[side, front\]/);
  assert.match(text, /public-base-url: https:\/\/proxy\.example\.com/);
});

test("nodes go into groups and out of them", () => {
  const groups = "proxy-groups:\n  - { name: Way, type: select, proxies: [DIRECT] }\n";
  const node = { name: "Oslo", type: "socks5", server: "192.0.2.1", port: 1080 };
  const text = withEdits(FILE + groups, nodeEdits([node], ["Way"]));
  assert.match(text, /proxies: \[DIRECT, Oslo\]/);
  assert.equal(parse(text).errors, undefined);
  const without = withEdits(text, removalOfNode(SETUP, "Oslo"));
  assert.match(without, /proxies: \[DIRECT\]/);
});
