/** Large documents of every kind that a running program takes, for the proof of its pauses. */

export interface Sizes {
  /** Of the largest list. */
  readonly names: number;
  /** Of the largest configuration. */
  readonly rules: number;
}

export type Take =
  | {
      readonly kind: "provider";
      readonly of: "rules" | "proxies";
      readonly name: string;
      readonly body: string;
    }
  | { readonly kind: "packed"; readonly body: string }
  | { readonly kind: "payload"; readonly body: string }
  | { readonly kind: "file"; readonly body: string; readonly get?: readonly string[] }
  | { readonly kind: "geodata" };

export interface Document {
  readonly name: string;
  readonly take: Take;
}

/** `base`: of the site that serves what the program downloads; `port`: of its listener. */
export const configOf = (base: string, port: number): string => `
rule-providers:
  names: { type: http, behavior: domain, format: text, url: '${base}/names', path: names.txt, interval: 0 }
  yaml: { type: http, behavior: domain, format: yaml, url: '${base}/yaml', path: names.yaml, interval: 0 }
  lines: { type: http, behavior: classical, format: text, url: '${base}/lines', path: lines.txt, interval: 0 }
proxy-providers: { proxies: { type: http, url: '${base}/proxies', path: nodes.yaml, interval: 0 } }
proxy-groups: [{ name: G, type: select, proxies: [DIRECT], use: [proxies] }]
listeners: [{ name: in, type: http, listen: 127.0.0.1, port: ${port} }]
geox-url: { geosite: '${base}/geosite' }
relay: portable
rules: ["RULE-SET,names,G", "RULE-SET,yaml,G", "RULE-SET,lines,G", "MATCH,DIRECT"]
`;

/** What the site serves while no large document is in force, by path. */
export const SMALL_PAGES: Readonly<Record<string, string>> = {
  "/names": "a.com\n",
  "/yaml": "payload: [a.com]\n",
  "/lines": "DOMAIN,a.com\n",
  "/proxies": "proxies: [{ name: n, type: direct }]\n",
};

const lines = (count: number, line: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => line(at)).join("");
const nameOf = (at: number): string => `host${at}.example${at % 97}.com`;
const LINK = "vless://b831381d-6324-4d53-ad4f-8cda48b30811@example.com:443#same\n";
const links = (count: number): string => lines(count, (at) => LINK.replace("same", `node ${at}`));
const bomb = lines(
  10,
  (at) =>
    `x${at}: &x${at} [${Array<string>(10)
      .fill(at === 0 ? "a" : `*x${at - 1}`)
      .join(", ")}]\n`,
);
const rule = (at: number): string =>
  at % 3 === 0
    ? `  - DOMAIN-SUFFIX,${nameOf(at)},DIRECT\n`
    : at % 1000 < 700
      ? `  - DOMAIN,${nameOf(at)},G\n`
      : `  - IP-CIDR,11.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}/32,DIRECT,no-resolve\n`;

export function documentsOf(config: string, { names, rules }: Sizes): readonly Document[] {
  const nodes = (name: string, body: string): Document => ({
    name,
    take: { kind: "provider", of: "proxies", name: "proxies", body },
  });
  const list = (name: string, provider: string, body: string): Document => ({
    name,
    take: { kind: "provider", of: "rules", name: provider, body },
  });
  // Without threads that relay, which would be started with the document and stay behind it.
  const put = (name: string, body: string): Document => ({
    name,
    take: { kind: "payload", body: `relay: portable\n${body}` },
  });
  const file = (name: string, body: string, ...get: readonly string[]): Document => ({
    name,
    take: { kind: "file", body, get },
  });
  const withRules = (body: string): string =>
    `${config.replace(/^rules:.*$/m, "rules:")}${body}  - MATCH,DIRECT\n`;
  const withDns = (keys: string): string =>
    `${config}dns:\n  enable: true\n  nameserver: [127.0.0.1]\n${keys}`;
  return [
    nodes("5 MB of [", `proxies: ${"[".repeat(5_000_000)}`),
    nodes("5 MB of {a: 1},", `proxies: [${"{a: 1},".repeat(700_000)}]`),
    nodes(
      "300,000 keys",
      lines(300_000, (at) => `k${at}: 1\n`),
    ),
    nodes("alias bomb", `${bomb}proxies: *x9\n${"#".repeat(20_000)}`),
    nodes("16,000 links", LINK.repeat(16_000)),
    nodes("16,000 links of as many names", links(16_000)),
    nodes("16,000 links of which one is new", `${links(16_000)}${LINK}`),
    nodes("8 MB of blank lines", "\n".repeat(8_000_000)),
    { name: "gzip bomb", take: { kind: "packed", body: "a".repeat(256 * 1024 * 1024) } },
    nodes("= 200,000 times", "=".repeat(200_000)),
    list("a line of blanks", "names", `a.com${" ".repeat(200_000)}x\n`),
    list(
      `${names} names`,
      "names",
      lines(names, (at) => `+.${nameOf(at)}\n`),
    ),
    list(`${names} names in YAML`, "yaml", `payload:\n${lines(names, (at) => `  - +.${nameOf(at)}\n`)}`),
    list(
      "20,000 patterns with a star",
      "names",
      lines(20_000, (at) => `*.${at}.*.${nameOf(at)}\n`),
    ),
    list(
      `${rules} classical lines`,
      "lines",
      lines(rules, (at) => `DOMAIN-SUFFIX,${nameOf(at)}\n`),
    ),
    put("1 MB of [ by PUT", `proxies: ${"[".repeat(1_000_000)}`),
    put("1 MB of {a: 1}, by PUT", `proxies: [${"{a: 1},".repeat(148_000)}]`),
    file("5 MB of [ by PUT of a path", `proxies: ${"[".repeat(5_000_000)}`),
    file("5 MB of {a: 1}, by PUT of a path", `proxies: [${"{a: 1},".repeat(700_000)}]`),
    file("a rule of blanks", withRules(`  - DOMAIN,a.com${" ".repeat(200_000)}x,DIRECT\n`)),
    file("the first configuration", config),
    file(`${rules} rules`, withRules(lines(rules, rule)), "/rules"),
    file(`${rules} rules again`, withRules(lines(rules, rule))),
    file(
      "16,000 nodes in the file",
      `${config}proxies:\n${lines(16_000, (at) => `  - {name: n${at}, type: http, server: 10.0.0.1, port: 1}\n`)}`,
      "/proxies",
      "/providers/proxies",
    ),
    file("100,000 hosts", `${config}hosts:\n${lines(100_000, (at) => `  ${nameOf(at)}: 10.0.0.1\n`)}`),
    file(
      "a policy for 100,000 names",
      withDns(`  nameserver-policy:\n${lines(100_000, (at) => `    +.${nameOf(at)}: 127.0.0.1\n`)}`),
    ),
    file(
      "a filter of 100,000 names",
      withDns(
        `  enhanced-mode: fake-ip\n  fake-ip-filter:\n${lines(100_000, (at) => `    - +.${nameOf(at)}\n`)}`,
      ),
    ),
    file("a category of 300,000 names", withRules("  - GEOSITE,big,G\n")),
    { name: "an update of that category", take: { kind: "geodata" } },
    file("the first configuration again", config),
  ];
}

/** GeoSite.dat (a protocol buffer) with the one category `big`. */
export function geoSite(count: number): Uint8Array {
  const domains = Array.from({ length: count }, (_, at) =>
    field(2, Buffer.concat([Buffer.of(8, 2), field(2, Buffer.from(nameOf(at)))])),
  );
  return field(1, Buffer.concat([field(1, Buffer.from("BIG")), ...domains]));
}

function field(number: number, body: Uint8Array): Buffer {
  const length: number[] = [];
  for (let left = body.length; ; left = Math.floor(left / 128)) {
    length.push(left < 128 ? left : (left % 128) | 128);
    if (left < 128) return Buffer.concat([Buffer.of((number << 3) | 2, ...length), body]);
  }
}
