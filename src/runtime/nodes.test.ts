import assert from "node:assert/strict";
import { test } from "node:test";
import { parseConfig } from "#config/parse.ts";
import type { ProxyProviderConfig } from "#config/sections/index.ts";
import { ConfigError } from "#core/errors.ts";
import { skipLarge } from "../../test/support/runs.ts";
import { testEnv } from "../../test/support/config-env.ts";
import { Slices } from "#core/slices.ts";
import { GROUP_KINDS } from "#groups/index.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { RULE_TYPES } from "#router/rules/index.ts";
import { contentIn } from "#documents/node-list.ts";
import { summarize } from "#config/summary.ts";
import { readItems } from "./nodes.ts";

const realEnv = {
  ...testEnv(),
  registries: { protocols: PROTOCOLS, groupKinds: GROUP_KINDS, ruleTypes: RULE_TYPES },
};

/** As a file defines it. */
function provider(fields: string): ProxyProviderConfig {
  const { config } = parseConfig(`proxy-providers: {p: {type: file, path: p${fields}}}\n`, testEnv());
  return config?.proxyProviders.get("p") as ProxyProviderConfig;
}

const read = (text: string, fields = "") =>
  readItems(contentIn(Buffer.from(text)), provider(fields), testEnv().files, new Slices());

const YAML = `
proxies:
  - {name: "HK 1", type: socks5, server: a, port: 1, Dialer_Proxy: old}
  - {name: "HK 1", type: socks5, server: b, port: 1}
  - {type: socks5}
  - {name: x, type: ssh}
`;

test("nodes of a provider: duplicates and nameless items are dropped, overrides act on fields, then names", async () => {
  const { nodes } = await read(
    YAML,
    ', dialer-proxy: d, override: {udp: true, additional-prefix: "[p] ", additional-suffix: "!", proxy-name: [{pattern: "(?i)hk (\\\\d)", target: "Hong Kong $1"}]}',
  );
  assert.deepEqual(
    nodes.map(({ name, udp, dialerProxy, protocol }) => [name, udp, dialerProxy, protocol?.type ?? null]),
    [
      ["[p] Hong Kong 1!", true, "d", "socks5"],
      ["[p] x!", true, "d", null],
    ],
  );
});

test("an override is for the nodes whose type knows it; the others are not warned of", async () => {
  const { config } = parseConfig(
    "proxy-providers: {p: {type: file, path: p, override: {name-cert-verify: b.example, up: 10 Mbps}}}\n",
    realEnv,
  );
  const text = `proxies:
  - {name: s, type: ss, server: a, port: 1, cipher: aes-128-gcm, password: p}
  - {name: t, type: trojan, server: a, port: 1, password: p}
`;
  const { nodes, warnings } = await readItems(
    contentIn(Buffer.from(text)),
    config?.proxyProviders.get("p") as ProxyProviderConfig,
    realEnv.files,
    new Slices(),
  );
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    nodes.map(({ options }) => "name-cert-verify" in options && options["name-cert-verify"]),
    [false, "b.example"],
  );
});

test("an unknown key that many nodes have is one line", async () => {
  const { warnings } = await read(
    `proxies: [${["a", "b", "c", "d"].map((name) => `{name: ${name}, type: direct, nix: 1}`).join(", ")}]`,
  );
  const shown = summarize("sub", warnings).filter(({ detail }) => !detail);
  assert.deepEqual(
    shown.map(({ text }) => text),
    ['sub:1:35 proxies[0].nix: unknown key "nix" (4 nodes: a, b, c and 1 more)'],
  );
});

test("nodes in UTF-16, as programs of Windows write them", () => {
  const bytes = Buffer.from("\ufeffproxies:\n- {name: 香港, type: direct}\n", "utf16le");
  for (const content of [bytes, Buffer.from(bytes).swap16()])
    assert.equal(contentIn(content).items.length, 1);
});

test("texts without nodes are refused", async () => {
  for (const text of ["a: 1", "", "proxies: {}", "- x", "proxies: [", "<html>"])
    await assert.rejects(async () => read(text), ConfigError, text);
});

const UUID = "b831381d-6324-4d53-ad4f-8cda48b30811";
const GOOD = "{name: good, type: socks5, server: a, port: 1}";

/** A line of flow YAML each; all of them are bad, each in its own way. */
const BAD_NODES = [
  "{name: bad, type: nonsense, server: a, port: 1}",
  "{name: bad, type: tuic, server: a, port: 1}",
  "{name: bad, type: socks5, port: 1}",
  "{name: bad, type: socks5, server: '', port: 1}",
  "{name: bad, type: socks5, server: , port: 1}",
  "{name: bad, type: socks5, server: a, port: 70000}",
  "{name: bad, type: socks5, server: a, port: x}",
  "{name: bad, type: socks5, server: a, port: 1, udp: [1]}",
  "{name: bad, type: socks5, server: a, port: 1, routing-mark: x}",
  "{name: bad, type: socks5, server: a, port: 1, SERVER: b}",
  "{name: bad, type: vless, server: a, port: 1, uuid: ''}",
  `{name: bad, type: vless, server: a, port: 1, uuid: ${UUID}, flow: other}`,
  `{name: bad, type: vless, server: a, port: 1, uuid: ${UUID}, encryption: mlkem768x25519plus.native}`,
  `{name: bad, type: vless, server: a, port: 1, uuid: ${UUID}, network: kcp}`,
  `{name: bad, type: vless, server: a, port: 1, uuid: ${UUID}, tls: true, reality-opts: {public-key: x}}`,
  `{name: bad, type: vless, server: a, port: 1, uuid: ${UUID}, tls: true, ech-opts: {enable: [1]}}`,
  `{name: bad, type: vless, server: a, port: 1, uuid: ${UUID}, network: xhttp, xhttp-opts: {session-key: x}}`,
  `{name: bad, type: vless, server: a, port: 1, uuid: ${UUID}, network: xhttp, xhttp-opts: {x-padding-bytes: 1-2}}`,
  `{name: bad, type: vless, server: a, port: 1, uuid: ${UUID}, network: xhttp, xhttp-opts: {download-settings: {server: b}}}`,
  `{name: bad, type: vmess, server: a, port: 1, uuid: ${UUID}, tls: true, shadow-tls-opts: {password: x}}`,
  "{name: bad, type: anytls, server: a, port: 1, password: p, reality-opts: {public-key: x}}",
  "{name: bad, type: trojan, server: a, port: 1, password: p, fingerprint: chrome}",
  "{name: bad, type: trojan, server: a, port: 1, password: p, ss-opts: {enabled: true, method: x}}",
  "{name: bad, type: trojan, server: a, port: 1, password: p, private-key: /etc/shadow}",
  "{name: bad, type: ss, server: a, port: 1, password: p, cipher: nonsense}",
  "{name: bad, type: ss, server: a, port: 1, password: p, cipher: 2022-blake3-aes-128-gcm}",
  "{name: bad, type: ss, server: a, port: 1, password: p, cipher: aes-128-gcm, plugin: shadow-tls, plugin-opts: {host: h, password: x, version: 3}}",
  "{name: bad, type: ss, server: a, port: 1, password: p, cipher: aes-128-gcm, plugin: restls, plugin-opts: {host: h}}",
  "{name: bad, type: ss, server: a, port: 1, password: p, cipher: aes-128-gcm, plugin: kcptun}",
  "{name: bad, type: ss, server: a, port: 1, password: p, cipher: aes-128-gcm, obfs: http}",
  "{name: bad, type: ss, server: a, port: 1, password: p, cipher: aes-128-gcm, smux: {enabled: true, brutal-opts: {enabled: true}}}",
];

test("a bad node of any kind costs itself: it stays, says why and where, and the others work", async () => {
  for (const bad of BAD_NODES) {
    const { config: setting } = parseConfig("proxy-providers: {p: {type: file, path: p}}\n", realEnv);
    const config = setting?.proxyProviders.get("p") as ProxyProviderConfig;
    const text = `proxies:\n  - ${GOOD}\n  - ${bad}\n  - {name: last, type: direct}\n`;
    const { nodes, warnings } = await readItems(
      contentIn(Buffer.from(text)),
      config,
      realEnv.files,
      new Slices(),
    );
    assert.deepEqual(
      nodes.map(({ name, inert }) => [name, inert === null]),
      [
        ["good", true],
        ["bad", false],
        ["last", true],
      ],
      bad,
    );
    const said = warnings.filter(
      ({ about }) => about?.what === `${nodes[1]?.inert}; the node stays and cannot be dialled`,
    );
    assert.deepEqual(
      said.map(({ line }) => line),
      [3],
      bad,
    );
  }
});

test("links and base64 of them: what cannot be used stays with its name, the others work", async () => {
  const vmess = (more: object) =>
    `vmess://${Buffer.from(JSON.stringify({ add: "a", port: 1, id: UUID, aid: 64, ps: "old", ...more })).toString("base64")}`;
  const links = [
    "ss://YWVzLTEyOC1nY206cA@a.example:1#plain",
    vmess({}),
    vmess({ net: "kcp", ps: "kcp" }),
    "ss://YWVzLTEyOC1nY206cA@a.example:1/?plugin=shadow-tls%3Bhost%3Dh#wrapped",
    `tuic://${UUID}:p@a.example:1#quic`,
    "juicity://a:b@a.example:1#juicy",
    "nonsense",
    "trojan://@:0",
    `vless://${UUID}@a.example:1?security=reality&pbk=jNXHt1yRo0vDuchQlIP6Z0ZvjT3KtzVI-T4E7RoLJS0&sni=b#real`,
  ].join("\n");
  for (const body of [links, Buffer.from(links).toString("base64")]) {
    const { config: setting } = parseConfig("proxy-providers: {p: {type: file, path: p}}\n", realEnv);
    const config = setting?.proxyProviders.get("p") as ProxyProviderConfig;
    const { nodes, skipped } = await readItems(
      contentIn(Buffer.from(body)),
      config,
      realEnv.files,
      new Slices(),
    );
    assert.deepEqual(
      nodes.map(({ name, inert }) => [name, inert === null]),
      [
        ["plain", true],
        ["old", true],
        ["kcp", false],
        ["wrapped", false],
        ["quic", true],
        ["juicy", false],
        ["real", true],
      ],
    );
    assert.match(skipped ?? "", /^2 lines are no links; the first is line 7/);
  }
});

test(
  "thousands of nodes are read in slices: the event loop turns meanwhile",
  { skip: skipLarge },
  async () => {
    const link = (at: number): string =>
      `vless://${UUID}@a.example:443?security=tls&type=ws&path=/${at}#n${at}\n`;
    const content = contentIn(Buffer.from(Array.from({ length: 10_000 }, (_, at) => link(at)).join("")));
    let turns = 0;
    const count = (): void => {
      turns++;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    const { nodes } = await readItems(content, provider(""), realEnv.files, new Slices());
    clearImmediate(next);
    assert.equal(nodes.length, 10_000);
    assert.ok(turns >= 3, `${turns} turns of the event loop`);
  },
);
