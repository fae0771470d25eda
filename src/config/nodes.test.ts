import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnv } from "../../test/support/config-env.ts";
import { nodeItems, parseNodes, type NodeOverride } from "./nodes.ts";
import { parseConfig } from "./parse.ts";

/** As a file defines them. */
function overrides(fields: string): NodeOverride {
  const { config } = parseConfig(`proxy-providers: {p: {type: file, path: p, ${fields}}}\n`, testEnv());
  return config?.proxyProviders.get("p") as NodeOverride;
}

const YAML = `
proxies:
  - {name: "HK 1", type: socks5, server: a, port: 1, Dialer_Proxy: old}
  - {name: "HK 1", type: socks5, server: b, port: 1}
  - {type: socks5}
  - {name: x, type: wireguard}
`;

test("nodes of a provider: duplicates and nameless items are dropped, overrides act on fields, then names", () => {
  const items = nodeItems(YAML);
  assert.ok(Array.isArray(items));
  const read = parseNodes(
    items,
    overrides(
      'dialer-proxy: d, override: {udp: true, additional-prefix: "[p] ", additional-suffix: "!", proxy-name: [{pattern: "(?i)hk (\\\\d)", target: "Hong Kong $1"}]}',
    ),
    testEnv(),
  );
  assert.ok("proxies" in read);
  assert.deepEqual(
    read.proxies.map(({ name, udp, dialerProxy, protocol }) => [
      name,
      udp,
      dialerProxy,
      protocol?.type ?? null,
    ]),
    [
      ["[p] Hong Kong 1!", true, "d", "socks5"],
      ["[p] x!", true, "d", null],
    ],
  );
  assert.equal(read.warnings.length, 1);
});

test("one bad node refuses the list; texts without proxies are refused", () => {
  const read = parseNodes([{ name: "a", type: "socks5", port: 1 }], overrides(""), testEnv());
  assert.ok("errors" in read && /proxy 0: '' has unset fields: server/.test(read.errors[0]?.message ?? ""));
  for (const text of ["a: 1", "", "proxies: {}", "- x", "proxies: [", "<html>"])
    assert.ok(!Array.isArray(nodeItems(text)), text);
});
