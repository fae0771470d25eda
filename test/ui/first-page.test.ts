import assert from "node:assert/strict";
import { test } from "node:test";
import type { Configs, Proxy } from "#ui/api/types.ts";
import { troublesOf } from "#ui/state/troubles.ts";
import { proxyAddress, proxyText } from "#ui/state/use-proxy.ts";
import { ENGLISH } from "#ui/words/words.ts";

const CONFIGS = { port: 0, "socks-port": 0, "mixed-port": 7890, "allow-lan": false } as unknown as Configs;

test("the address is that of this machine, or the one by which the page was reached where others may use it", () => {
  assert.deepEqual(proxyAddress(CONFIGS, "192.0.2.1"), {
    http: "127.0.0.1:7890",
    socks: "127.0.0.1:7890",
    isShared: false,
  });
  const shared = { ...CONFIGS, "allow-lan": true, port: 8080 };
  assert.equal(proxyAddress(shared, "[2001:db8::1]")?.http, "[2001:db8::1]:8080");
  const socks = proxyAddress({ ...CONFIGS, "mixed-port": 0, "socks-port": 1080 }, "");
  assert.ok(socks !== null);
  assert.equal(proxyText(socks, "git"), "git config --global http.proxy socks5h://127.0.0.1:1080");
  assert.equal(proxyAddress({ ...CONFIGS, "mixed-port": 0 }, ""), null);
});

test("what is not well is said with reasons, and what is well is not", () => {
  const node = (name: string, more: Partial<Proxy> = {}): Proxy => ({
    name,
    type: "Socks5",
    alive: true,
    history: [],
    extra: {},
    udp: false,
    ...more,
  });
  const none = { proxies: [node("a")], providers: [], rules: [], ruleProviders: [], warnings: [] };
  assert.deepEqual(troublesOf(ENGLISH, none), []);
  const found = troublesOf(ENGLISH, {
    proxies: [
      ...["b", "c", "d", "e"].map((name) => node(name, { unavailable: "ssh is not supported" })),
      node("f", { history: [{ time: "", delay: 0 }] }),
      node("group", { all: ["b"], history: [{ time: "", delay: 0 }] }),
    ],
    providers: [
      { name: "p", vehicleType: "HTTP", proxies: [], updatedAt: "0001-01-01T00:00:00Z" },
      { name: "inline", vehicleType: "Inline", proxies: [] },
      { name: "default", vehicleType: "Compatible", proxies: [node("g", { unavailable: "twice" })] },
    ],
    rules: [],
    ruleProviders: [],
    warnings: [{ time: "", level: "warn", message: "careful" }],
  });
  assert.deepEqual(
    found.map(({ text, page }) => `${page}: ${text}`),
    [
      "groups: 4 nodes cannot be used",
      "groups: 1 node did not answer the last test",
      "groups: 1 list was never fetched",
      "logs: 1 new warning in the log",
    ],
  );
  assert.match(found[0]?.details ?? "", /^b: ssh is not supported\n.*\n.*\n… \+1$/s);
});
