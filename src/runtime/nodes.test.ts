import assert from "node:assert/strict";
import { test } from "node:test";
import { parseConfig } from "#config/parse.ts";
import type { ProxyProviderConfig } from "#config/sections/index.ts";
import { ConfigError } from "#core/errors.ts";
import { testEnv } from "../../test/support/config-env.ts";
import { readNodes } from "./nodes.ts";

/** As a file defines it. */
function provider(fields: string): ProxyProviderConfig {
  const { config } = parseConfig(`proxy-providers: {p: {type: file, path: p${fields}}}\n`, testEnv());
  return config?.proxyProviders.get("p") as ProxyProviderConfig;
}

const read = (text: string, fields = "") => readNodes(Buffer.from(text), provider(fields), testEnv().files);

const YAML = `
proxies:
  - {name: "HK 1", type: socks5, server: a, port: 1, Dialer_Proxy: old}
  - {name: "HK 1", type: socks5, server: b, port: 1}
  - {type: socks5}
  - {name: x, type: wireguard}
`;

test("nodes of a provider: duplicates and nameless items are dropped, overrides act on fields, then names", () => {
  const nodes = read(
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

test("one bad node refuses the list; texts without nodes are refused", () => {
  assert.throws(() => read("proxies: [{name: a, type: socks5, port: 1}]"), {
    name: "ConfigError",
    message: /^proxy 0 error: '' has unset fields: server/,
  });
  for (const text of ["a: 1", "", "proxies: {}", "- x", "proxies: [", "<html>"])
    assert.throws(() => read(text), ConfigError, text);
});
