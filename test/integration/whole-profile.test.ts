/** A profile as large as they get, from the start to the first decision. */
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { chainOf, HEAD } from "../support/provider-core.ts";
import { noRealData, REAL_DATA } from "../support/real-data.ts";
import { startCore } from "../support/start-core.ts";

/** 500 nodes, 30 groups, 2,000 rules and 10 rule sets, as large as profiles get. */
function wholeProfile(home: string): string {
  const rows = <T>(count: number, make: (at: number) => T) =>
    Array.from({ length: count }, (_, at) => make(at));
  const lists = [
    "geosite/cn.mrs",
    "geosite/geolocation-!cn.mrs",
    "geosite/apple.yaml",
    "geosite/google.list",
    "geosite/category-ads-all.classical.yaml",
    "geoip/cn.mrs",
    "geoip/google.yaml",
    "geoip/cloudflare.list",
    "geosite/youtube.mrs",
    "geosite/private.yaml",
  ];
  const FORMATS: Readonly<Record<string, string>> = { mrs: "mrs", yaml: "yaml", list: "text" };
  const providers = lists.map((file, at) => {
    copyFileSync(join(REAL_DATA, file), join(home, `list-${at}`));
    const behavior = file.includes("classical")
      ? "classical"
      : file.startsWith("geoip")
        ? "ipcidr"
        : "domain";
    return `  set${at}: {type: file, behavior: ${behavior}, format: ${FORMATS[file.split(".").at(-1) as string]}, path: list-${at}}`;
  });
  return `${HEAD}
proxies:
${rows(500, (at) => `  - {name: node ${at}, type: ${["trojan", "vless", "ss"][at % 3]}, server: s${at}.example, port: 443, ${["password: p", "uuid: b831381d-6324-4d53-ad4f-8cda48b30811, tls: true", "cipher: aes-128-gcm, password: p"][at % 3]}}`).join("\n")}
proxy-groups:
${rows(30, (at) => `  - {name: group ${at}, type: ${["select", "url-test", "fallback"][at % 3]}, proxies: [${rows(50, (n) => `node ${(at * 16 + n) % 500}`).join(", ")}]}`).join("\n")}
rule-providers:
${providers.join("\n")}
rules:
${rows(1989, (at) => `  - ${["DOMAIN-SUFFIX", "DOMAIN", "DOMAIN-KEYWORD"][at % 3]},d${at}.example,group ${at % 30}`).join("\n")}
${rows(10, (at) => `  - RULE-SET,set${at},group ${at}${at >= 5 && at <= 7 ? ",no-resolve" : ""}`).join("\n")}
  - MATCH,DIRECT
`;
}

test(
  "a profile of 500 nodes, 30 groups, 2,000 rules and 10 rule sets starts in time",
  { skip: noRealData },
  async (t) => {
    const home = mkdtempSync(join(tmpdir(), "weir-whole-"));
    try {
      writeFileSync(join(home, "config.yaml"), wholeProfile(home));
      const startedMs = performance.now();
      const core = await startCore("", { args: ["-d", home] });
      await using _core = core;
      const tookMs = performance.now() - startedMs;
      t.diagnostic(`started in ${(tookMs / 1000).toFixed(2)} s`);
      assert.match(core.output(), /2000 rules, 500 proxies/);
      assert.ok(tookMs < 15_000, `${tookMs} ms: the aim is 3 s on an idle machine`);
      assert.equal((await chainOf(core, "www.baidu.com"))[0], "g");
    } finally {
      rmSync(home, { recursive: true });
    }
  },
);
