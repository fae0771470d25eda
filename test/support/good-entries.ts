/** A good profile in which nothing names anything that may be left out: one entry of each kind that a list can have. */

export interface Entry {
  /** The list that it stands in. */
  readonly section: string;
  /** The value of a list item; that of a key where `key` says which. */
  readonly value: unknown;
  readonly key?: string;
}

const at = { server: "node.example.org", port: 443 };
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const tls = { tls: true, sni: "a.example.org", "skip-cert-verify": false, alpn: ["h2"] };

const NODES: readonly object[] = [
  { type: "socks5", ...at, username: "u", password: "p", udp: true, tls: true, "dialer-proxy": "DIRECT" },
  { type: "http", ...at, username: "u", password: "p", headers: { "X-A": "b" } },
  {
    type: "ss",
    ...at,
    cipher: "aes-128-gcm",
    password: "p",
    udp: true,
    plugin: "obfs",
    "plugin-opts": { mode: "http" },
  },
  {
    type: "ss",
    ...at,
    cipher: "2022-blake3-aes-128-gcm",
    password: "AAAAAAAAAAAAAAAAAAAAAA==",
    smux: { enabled: true },
  },
  {
    type: "trojan",
    ...at,
    password: "p",
    sni: "a.example.org",
    network: "grpc",
    "grpc-opts": { "grpc-service-name": "g" },
  },
  {
    type: "vmess",
    ...at,
    uuid,
    alterId: 0,
    cipher: "auto",
    ...tls,
    network: "ws",
    "ws-opts": { path: "/", headers: { Host: "a" } },
  },
  {
    type: "vless",
    ...at,
    uuid,
    flow: "",
    ...tls,
    network: "xhttp",
    "xhttp-opts": { path: "/x", mode: "auto" },
  },
  { type: "anytls", ...at, password: "p", "idle-session-timeout": 30, "client-fingerprint": "chrome" },
  { type: "direct", "interface-name": "eth0", "routing-mark": 7, "ip-version": "ipv4" },
  { type: "hysteria2", ...at, password: "p" },
  { type: "tuic", ...at, uuid, password: "p", "udp-relay-mode": "quic", alpn: ["h3"] },
];

const GROUPS: readonly object[] = [
  { type: "select", proxies: ["DIRECT", "REJECT"], filter: "(?i)a", icon: "i", hidden: true },
  {
    type: "url-test",
    proxies: ["DIRECT"],
    url: "https://x.example.org/",
    interval: 300,
    tolerance: 50,
    lazy: true,
  },
  { type: "fallback", proxies: ["DIRECT"], interval: 300, timeout: 5000, "expected-status": "200/204" },
  { type: "load-balance", proxies: ["DIRECT"], strategy: "round-robin", "max-failed-times": 5 },
  { type: "relay", proxies: ["DIRECT"], "disable-udp": true, "exclude-filter": "b", "exclude-type": "Vless" },
];

const LISTENERS: readonly object[] = [
  { type: "socks", port: 17001, listen: "127.0.0.1", udp: true, users: [{ username: "u", password: "p" }] },
  { type: "http", port: 17002, listen: "127.0.0.1", proxy: "DIRECT" },
  { type: "mixed", port: "17003-17004", listen: "::1" },
  { type: "shadowsocks", port: 17005, cipher: "aes-128-gcm", password: "p", udp: true },
  { type: "vless", port: 17006, "allow-insecure": true, users: [{ username: "u", uuid }] },
  { type: "vmess", port: 17007, users: [{ username: "u", uuid, alterId: 0 }], "ws-path": "/" },
  {
    type: "hysteria2",
    port: 17009,
    users: { ann: "p" },
    certificate: "c.pem",
    "private-key": "k.pem",
    up: "100 mbps",
    masquerade: "https://a.example.org",
  },
  { type: "tuic", port: 17010, users: { [uuid]: "p" }, certificate: "c.pem", "private-key": "k.pem" },
  { type: "tunnel", port: 17008, network: ["tcp", "udp"], target: "192.0.2.1:53" },
];

const RULES: readonly string[] = [
  "DOMAIN,a.example.org,DIRECT",
  "DOMAIN-SUFFIX,example.org,DIRECT",
  "DOMAIN-KEYWORD,example,REJECT",
  "DOMAIN-REGEX,^a+$,DIRECT",
  "DOMAIN-WILDCARD,*.a.org,DIRECT",
  "IP-CIDR,192.0.2.0/24,DIRECT,no-resolve",
  "IP-CIDR6,2001:db8::/32,DIRECT",
  "SRC-IP-CIDR,192.0.2.0/24,DIRECT",
  "DST-PORT,80/443/1000-2000,DIRECT",
  "SRC-PORT,1000-2000,DIRECT",
  "IN-TYPE,SOCKS5/HTTP,DIRECT",
  "IN-USER,anna,DIRECT",
  "PROCESS-NAME,curl,DIRECT",
  "PROCESS-PATH-REGEX,.*curl$,DIRECT",
  "UID,1000,DIRECT",
  "NETWORK,udp,DIRECT",
  "DSCP,4,DIRECT",
  "AND,((NETWORK,udp),(DST-PORT,443)),REJECT",
  "OR,((DOMAIN,a.org),(NOT,((DOMAIN,b.org)))),DIRECT",
];

const TEXTS: Readonly<Record<string, readonly string[]>> = {
  rules: RULES,
  tunnels: ["tcp/udp,127.0.0.1:17010,192.0.2.1:53,DIRECT", "tcp,127.0.0.1:17011,a.example.org:80"],
  authentication: ["anna:secret", "bert:secret"],
  "skip-auth-prefixes": ["127.0.0.0/8", "::1/128"],
  "dns.nameserver": ["192.0.2.53", "tls://192.0.2.54", "https://192.0.2.55/dns-query", "tcp://192.0.2.56:53"],
  "dns.fake-ip-filter": ["*.lan", "+.local", "a.example.org"],
  "dns.fallback-filter.ipcidr": ["240.0.0.0/4", "0.0.0.0/32"],
  "dns.fallback-filter.domain": ["+.example.com", "b.example.com"],
  "sniffer.skip-domain": ["+.push.example.com", "Mijia Cloud"],
  "sniffer.force-domain": ["+.v2ex.example"],
};

const PROVIDERS: readonly (readonly [string, string, unknown])[] = [
  ["rule-providers", "names", { type: "inline", behavior: "domain", payload: ["+.a.org", "b.org"] }],
  [
    "rule-providers",
    "nets",
    {
      type: "http",
      behavior: "ipcidr",
      format: "text",
      url: "https://x.example.org/l",
      path: "./l.txt",
      interval: 86400,
    },
  ],
  [
    "proxy-providers",
    "inline",
    { type: "inline", payload: [{ name: "p", type: "socks5", ...at }], "health-check": { enable: false } },
  ],
  [
    "proxy-providers",
    "far",
    {
      type: "http",
      url: "https://x.example.org/n",
      path: "./n.yaml",
      interval: 3600,
      filter: "a",
      override: { udp: true, "additional-prefix": "x" },
    },
  ],
  ["hosts", "a.test", "192.0.2.1"],
  ["hosts", "b.test", ["192.0.2.1", "192.0.2.2"]],
  ["dns.nameserver-policy", "+.c.test", ["192.0.2.53"]],
];

const named = (section: string, items: readonly object[]): Entry[] =>
  items.map((item, index) => ({ section, value: { name: `${section} ${index}`, ...item } }));

export const GOOD_ENTRIES: readonly Entry[] = [
  ...named("proxies", NODES),
  ...named("proxy-groups", GROUPS),
  ...named("listeners", LISTENERS),
  ...Object.entries(TEXTS).flatMap(([section, items]) => items.map((value): Entry => ({ section, value }))),
  ...PROVIDERS.map(([section, key, value]): Entry => ({ section, key, value })),
];

/** Around the entries. */
const REST = {
  dns: { enable: true, "enhanced-mode": "fake-ip", fallback: ["192.0.2.57"], "fallback-filter": {} },
  sniffer: { enable: true, sniff: { TLS: { ports: [443] } } },
};

/** One line for each entry, so that the line of a message says which one is meant. */
export function profileOf(entries: readonly Entry[]): {
  readonly text: string;
  lineOf(entry: Entry): number;
} {
  const lines: string[] = [];
  const at = new Map<Entry, number>();
  const sections = [...new Set(entries.map(({ section }) => section))].sort();
  const open = new Set<string>();
  for (const section of sections) {
    const path = section.split(".");
    for (const [depth, part] of path.entries()) {
      const here = path.slice(0, depth + 1).join(".");
      if (open.has(here)) continue;
      open.add(here);
      lines.push(`${"  ".repeat(depth)}${part}:`);
      const rest = depth === 0 ? (REST as Readonly<Record<string, object>>)[part] : undefined;
      for (const [key, value] of Object.entries(rest ?? {}))
        if (!(isObject(value) && sections.some((other) => other.startsWith(`${part}.${key}.`))))
          lines.push(`  ${key}: ${JSON.stringify(value)}`);
    }
    const pad = "  ".repeat(path.length);
    for (const entry of entries.filter((other) => other.section === section)) {
      const lead = entry.key === undefined ? "- " : `${JSON.stringify(entry.key)}: `;
      lines.push(`${pad}${lead}${JSON.stringify(entry.value)}`);
      at.set(entry, lines.length);
    }
  }
  return { text: `${lines.join("\n")}\n`, lineOf: (entry) => at.get(entry) ?? 0 };
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
