/** Programs that write configurations for others often write keys that they have no value for: as empty text, or 0. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { REGISTRIES } from "#cli/parse-env.ts";
import { parseConfig } from "#config/parse.ts";
import { proxy } from "./support/config-texts.ts";
import { testEnv } from "./support/config-env.ts";

const SERVER = "name: a, server: s.example, port: 443";
const UUID = "uuid: b831381d-6324-4d53-ad4f-8cda48b30811";
const NODES: Readonly<Record<string, string>> = {
  ss: `${SERVER}, type: ss, cipher: aes-128-gcm, password: p`,
  vless: `${SERVER}, type: vless, ${UUID}, tls: true, network: xhttp`,
  hysteria2: `${SERVER}, type: hysteria2, password: p`,
  tuic: `${SERVER}, type: tuic, ${UUID}, password: p`,
};

const EMPTY = ['""', "0"];
/** Type, the keys as a map of YAML with `EMPTY` for the value, and the same map without it. */
const CASES: readonly (readonly [type: string, written: string, unwritten: string])[] = [
  ["ss", "udp-over-tcp-version: EMPTY", ""],
  ["ss", "smux: {enabled: true, protocol: EMPTY}", "smux: {enabled: true}"],
  ["vless", "fingerprint: EMPTY", ""],
  ["vless", "xhttp-opts: {mode: EMPTY}", "xhttp-opts: {}"],
  ["vless", "xhttp-opts: {sc-max-each-post-bytes: EMPTY}", "xhttp-opts: {}"],
  ["vless", "xhttp-opts: {sc-min-posts-interval-ms: EMPTY}", "xhttp-opts: {}"],
  ["hysteria2", "ports: EMPTY", ""],
  ["hysteria2", "hop-interval: EMPTY", ""],
  ["hysteria2", "udp-mtu: EMPTY", ""],
  ["hysteria2", "max-stream-receive-window: EMPTY", ""],
  ["tuic", "udp-over-stream-version: EMPTY", ""],
  ["tuic", "recv-window: EMPTY", ""],
  ["tuic", "max-datagram-frame-size: EMPTY", ""],
];

function optionsOf(type: string, keys: string): object {
  const text = proxy(`${NODES[type]}${keys === "" ? "" : `, ${keys}`}`);
  const { config, errors, warnings } = parseConfig(text, testEnv({ registries: REGISTRIES }));
  assert.deepEqual([errors, warnings], [undefined, []], keys);
  const [node] = config?.proxies ?? [];
  assert.equal(node?.inert, null, keys);
  return Object.fromEntries(Object.entries(node?.options ?? {}).filter(([, value]) => value !== undefined));
}

test("a key of a node that is empty or 0 means what it means where it is not there", () => {
  for (const [type, written, unwritten] of CASES)
    for (const empty of EMPTY)
      assert.deepEqual(optionsOf(type, written.replace("EMPTY", empty)), optionsOf(type, unwritten));
});

test("other wrong values stay mistakes", () => {
  for (const [type, key] of [
    ["ss", "udp-over-tcp-version: 3"],
    ["vless", "xhttp-opts: {mode: stream}"],
    ["hysteria2", "ports: 70000"],
  ] as const) {
    const { errors } = parseConfig(proxy(`${NODES[type]}, ${key}`), testEnv({ registries: REGISTRIES }));
    assert.match(errors?.[0]?.message ?? "", /expected/, key);
  }
});

/** Sections, written as above. */
const SECTIONS: readonly (readonly [written: string, unwritten: string])[] = [
  ["external-ui-url: EMPTY", ""],
  ["tun: {udp-timeout: EMPTY}", ""],
  ["tun: {icmp-timeout: EMPTY}", ""],
  ["tun: {iproute2-table-index: EMPTY, iproute2-rule-index: EMPTY}", ""],
  ["tun: {auto-redirect-iproute2-fallback-rule-index: EMPTY}", ""],
  [
    "proxy-providers: {p: {type: file, path: p, health-check: {enable: true, timeout: EMPTY}}}",
    "proxy-providers: {p: {type: file, path: p, health-check: {enable: true}}}",
  ],
  [
    "rule-providers: {r: {type: file, behavior: domain, path: r, format: EMPTY}}",
    "rule-providers: {r: {type: file, behavior: domain, path: r}}",
  ],
];

test("so do keys of sections", () => {
  const parse = (text: string) => parseConfig(`mode: rule\n${text}\n`, testEnv({ registries: REGISTRIES }));
  for (const [written, unwritten] of SECTIONS)
    for (const empty of EMPTY)
      assert.deepEqual(parse(written.replaceAll("EMPTY", empty)), parse(unwritten), written);
  const group = (key: string) => `proxy-groups: [{name: g, type: select, proxies: [DIRECT]${key}}]`;
  assert.deepEqual(parse(group(', empty-fallback: ""')), parse(group("")));
  assert.deepEqual(parse(group(", timeout: 0, max-failed-times: 0")), parse(group("")));
});
