/** A good configuration, and hundreds that each differ from it by one mistake. Deterministic: same list every time. */

export interface BrokenConfig {
  /** What was done to the good one; unique. */
  readonly name: string;
  readonly text: string;
}

/** Uses only types that every build speaks. */
export const GOOD_CONFIG = `mixed-port: 7890
socks-port: 7891
allow-lan: true
bind-address: "*"
authentication:
  - "user:pass"
skip-auth-prefixes:
  - 127.0.0.1/8
lan-allowed-ips:
  - 0.0.0.0/0
mode: rule
log-level: info
ipv6: true
routing-mark: 0
find-process-mode: strict
tcp-concurrent: false
external-controller: 127.0.0.1:9090
secret: 0123
profile:
  store-selected: true
hosts:
  router.lan: 192.168.1.1
  alias.lan: router.lan
dns:
  enable: true
  listen: 127.0.0.1:1053
  ipv6: false
  enhanced-mode: fake-ip
  fake-ip-range: 198.18.0.1/16
  fake-ip-filter-mode: blacklist
  fake-ip-filter:
    - "*.lan"
  default-nameserver:
    - 223.5.5.5
  nameserver:
    - https://1.1.1.1/dns-query
    - tls://8.8.8.8
  nameserver-policy:
    "+.example.org": 9.9.9.9
sniffer:
  enable: true
  sniff:
    TLS:
      ports: [443, 8443]
    HTTP:
      ports: [80, 8080-8880]
tun:
  enable: false
  stack: system
  auto-route: true
  mtu: 1500
  dns-hijack:
    - any:53
  route-exclude-address:
    - 10.0.0.0/8
  kernel-direct-max-entries: 0
proxies:
  - name: first
    type: socks5
    server: one.example.org
    port: 1080
    username: 007
    udp: true
  - name: second
    type: socks5
    server: 192.0.2.1
    port: 1081
    dialer-proxy: first
  - {name: third, type: socks5, server: three.example.org, port: 1082}
proxy-groups:
  - name: Auto
    type: url-test
    proxies: [first, second]
    url: https://www.gstatic.com/generate_204
    interval: 300
    tolerance: 50
  - name: Main
    type: select
    proxies:
      - Auto
      - third
      - DIRECT
listeners:
  - name: extra
    type: socks
    listen: 127.0.0.1
    port: 7900
  - name: both
    type: mixed
    port: 7901
tunnels:
  - tcp/udp,127.0.0.1:6553,8.8.8.8:53,Main
rule-providers:
  ads:
    type: inline
    behavior: domain
    payload:
      - "+.ads.example"
sub-rules:
  inner:
    - DOMAIN,inner.example.org,Main
    - MATCH,DIRECT
rules:
  - RULE-SET,ads,REJECT
  - DOMAIN-SUFFIX,example.org,Main
  - DOMAIN,www.example.com,Auto
  - IP-CIDR,10.0.0.0/8,DIRECT,no-resolve
  - AND,((DOMAIN,a.example),(DOMAIN-SUFFIX,example)),third
  - SUB-RULE,(DOMAIN-SUFFIX,lan),inner
  - MATCH,Main
`;

/** `find` must stand in the good configuration exactly once. */
type Edit = readonly [name: string, find: string, replace: string];

const WRONG_WORDS = ["ruel", "on/off", "7", "[a, b]", "{a: b}"];

function enums(): Edit[] {
  const lines = [
    "mode: rule",
    "log-level: info",
    "find-process-mode: strict",
    "  enhanced-mode: fake-ip",
    "  fake-ip-filter-mode: blacklist",
    "  stack: system",
    "    behavior: domain",
  ];
  return lines.flatMap((line) => WRONG_WORDS.map((word) => valueEdit("enum", line, word)));
}

function numbers(): Edit[] {
  const lines = [
    "mixed-port: 7890",
    "socks-port: 7891",
    "routing-mark: 0",
    "  mtu: 1500",
    "    interval: 300",
    "  kernel-direct-max-entries: 0",
  ];
  const outside = ["-1", "99999999999"];
  const words = ["1.5", "many", "[1, 2]", "{a: 1}"];
  // A port outside costs only its listener.
  return lines.flatMap((line) =>
    [...(line.includes("-port") ? [] : outside), ...words].map((value) => valueEdit("number", line, value)),
  );
}

function flags(): Edit[] {
  const lines = [
    "allow-lan: true",
    "ipv6: true",
    "tcp-concurrent: false",
    "  store-selected: true",
    "  auto-route: true",
    "    udp: true",
  ];
  return lines.flatMap((line) =>
    ["maybe", '"true"', "[true]", "{on: true}"].map((value) => valueEdit("flag", line, value)),
  );
}

function addresses(): Edit[] {
  const networks = ["  - 127.0.0.1/8\n", "  - 0.0.0.0/0\n", "    - 10.0.0.0/8\n"].map((item) =>
    item.trimEnd(),
  );
  const bad = ["10.0.0.0/33", "10.0.0/8", "fd00::/129", "lan", "1.2.3.4/-1", "{a: b}"];
  const edits = networks.flatMap((item) =>
    bad.map((text): Edit => [
      `cidr ${item.trim()} → ${text}`,
      `${item}\n`,
      `${item.slice(0, item.indexOf("-") + 2)}${text}\n`,
    ]),
  );
  const ranges = ["not-a-range", "198.18.0.1/33", "198.18.0.1/31", "fd00::/64", "[a]"];
  edits.push(...ranges.map((text) => valueEdit("fake range", "  fake-ip-range: 198.18.0.1/16", text)));
  for (const text of ["localhost", "1.2.3", "::g", "*"])
    edits.push(valueEdit("listen", "    listen: 127.0.0.1", text));
  return edits;
}

function ports(): Edit[] {
  const nodes = ["    port: 1080", "    port: 1081"]; // a number out of range costs only its node or listener
  const listeners = ["    port: 7900", "    port: 7901"];
  const edits = (lines: readonly string[], values: readonly string[]) =>
    lines.flatMap((line) => values.map((value) => valueEdit("port", line, value)));
  const words = ["http", "1-2-3", "[]"];
  return [...edits(nodes, words), ...edits(listeners, words)];
}

function servers(): Edit[] {
  const lines = ["    - https://1.1.1.1/dns-query", "    - tls://8.8.8.8", "    - 223.5.5.5"];
  const bad = ["htps://1.1.1.1", "rcode://sucess", "[a]", "{a: b}"];
  const edits = lines.flatMap((line) =>
    bad.map((text): Edit => [`nameserver ${line.trim()} → ${text}`, `${line}\n`, `    - ${text}\n`]),
  );
  edits.push(["default nameserver by name", "    - 223.5.5.5\n", "    - dns.example.org\n"]);
  edits.push(["no nameserver", "    - https://1.1.1.1/dns-query\n    - tls://8.8.8.8\n", "    []\n"]);
  edits.push(["policy pattern", '"+.example.org": 9', '"a..b": 9']);
  edits.push(["policy of an unknown set", '"+.example.org": 9', '"rule-set:adds": 9']);
  edits.push(["respect-rules alone", "  ipv6: false\n", "  ipv6: false\n  respect-rules: true\n"]);
  return edits;
}

function names(): Edit[] {
  return [
    ["unknown member", "proxies: [first, second]", "proxies: [first, secnd]"],
    ["unknown member in block", "      - third\n", "      - thrid\n"],
    ["unknown target", "example.org,Main\n  - DOMAIN,www", "example.org,Mian\n  - DOMAIN,www"],
    ["unknown target of MATCH", "  - MATCH,Main\n", "  - MATCH,main\n"],
    ["unknown target of AND", "(DOMAIN-SUFFIX,example)),third", "(DOMAIN-SUFFIX,example)),thrid"],
    ["unknown sub-rule", "lan),inner", "lan),iner"],
    ["unknown set", "RULE-SET,ads,", "RULE-SET,adds,"],
    ["unknown target inside", "inner.example.org,Main", "inner.example.org,Mein"],
    ["unknown dialer", "dialer-proxy: first", "dialer-proxy: frist"],
    ["unknown tunnel proxy", "8.8.8.8:53,Main", "8.8.8.8:53,Mian"],
    ["duplicate proxy", "- name: second", "- name: first"],
    ["duplicate flow proxy", "{name: third", "{name: first"],
    ["duplicate group", "- name: Main", "- name: Auto"],
    ["group named as proxy", "- name: Main", "- name: third"],
    ["proxy named as built-in", "{name: third", "{name: DIRECT"],
    ["duplicate listener", "- name: both", "- name: extra"],
    ["reserved listener", "- name: both", "- name: DEFAULT-MIXED"],
    ["dialer of itself", "dialer-proxy: first", "dialer-proxy: second"],
    ["group in itself", "proxies: [first, second]", "proxies: [first, Auto]"],
    ["groups in each other", "proxies: [first, second]", "proxies: [first, Main]"],
    ["sub-rule in itself", "    - DOMAIN,inner.example.org,Main\n", "    - SUB-RULE,(DOMAIN,a),inner\n"],
    ["alias circle", "router.lan: 192.168.1.1", "router.lan: alias.lan"],
    ["mixed hosts", "router.lan: 192.168.1.1", "router.lan: [192.168.1.1, a.lan]"],
    ["group type", "type: url-test", "type: urltest"],
    ["listener type", "    type: socks\n    listen", "    type: sock\n    listen"],
    ["proxy type", "{name: third, type: socks5", "{name: third, type: sokcs5"],
    ["sniffer protocol", "    TLS:\n", "    TSL:\n"],
    ["sniffer port", "[443, 8443]", "[443, 99999]"],
    ["hijack", "- any:53", "- any"],
    ["kernel-direct alone", "  kernel-direct-max-entries: 0", "  kernel-direct: true"],
    ["kernel-direct entries", "kernel-direct-max-entries: 0", "kernel-direct-max-entries: 65537"],
    ["classifier alone", "  kernel-direct-max-entries: 0", "  kernel-direct-ebpf: true"],
    ["tunnel network", "  - tcp/udp,127", "  - tpc,127"],
    ["tunnel without target", ",8.8.8.8:53,Main", ""],
    ["group without members", "    proxies: [first, second]\n", ""],
    ["rule type", "  - DOMAIN-SUFFIX,example.org", "  - DOMAIN-SUFIX,example.org"],
    ["rule without target", "  - DOMAIN,www.example.com,Auto", "  - DOMAIN,www.example.com"],
    ["rule as map", "  - DOMAIN,www.example.com,Auto", "  - DOMAIN: www.example.com"],
    ["rule CIDR", "10.0.0.0/8,DIRECT", "10.0.0.0/88,DIRECT"],
    ["rule logic", "((DOMAIN,a.example),(DOMAIN-SUFFIX,example))", "(DOMAIN,a.example"],
    ["provider type", "type: inline", "type: inlin"],
    ["mrs of classical", "behavior: domain\n", "behavior: classical\n    format: mrs\n"],
    ["unsafe path", "type: inline", "type: inline\n    path: /etc/shadow"],
    ["svc without secret", "profile:\n", "svc: {}\nprofile:\n"],
    ["svc with a short secret", "profile:\n", "svc: {secret: short}\nprofile:\n"],
    [
      "device by MAC",
      "profile:\n",
      'traffic-control: {enabled: true, devices: [{mac: "aa:bb:cc:dd:ee:ff"}]}\nprofile:\n',
    ],
    [
      "policy misspelt",
      "profile:\n",
      "traffic-control: {enabled: true, global: {downlod-bps: 5}}\nprofile:\n",
    ],
    [
      "retention",
      "profile:\n",
      "traffic-control: {enabled: true, reports: {hourly-retention: 1y}}\nprofile:\n",
    ],
    ["client auth", "profile:\n", "tls: {client-auth-type: require-and-verify}\nprofile:\n"],
    ["client auth type", "profile:\n", "tls: {client-auth-type: require}\nprofile:\n"],
  ];
}

function missing(): Edit[] {
  const lines = [
    "    server: one.example.org\n",
    "    port: 1080\n",
    "    server: 192.0.2.1\n",
    "    type: url-test\n",
    "    type: inline\n",
    "    behavior: domain\n",
    "    type: mixed\n",
  ];
  return lines.map((line): Edit => [`without ${line.trim()}`, line, ""]);
}

function syntax(): Edit[] {
  const places = [
    "mode: rule\n",
    "  store-selected: true\n",
    "  enhanced-mode: fake-ip\n",
    "    server: one.example.org\n",
    "  - MATCH,Main\n",
    "    tolerance: 50\n",
    "    - any:53\n",
  ];
  const damage: readonly (readonly [string, (line: string) => string])[] = [
    ["tab", (line) => `\t${line.trimStart()}`],
    ["open quote", (line) => `${line.trimEnd()} "\n"`.replace(' "\n"', '\n"open\n')],
    ["open bracket", (line) => `${line}x: [1, 2\n`],
    ["bad escape", (line) => `${line}y: "\\q"\n`],
    [
      "unknown alias",
      (line) =>
        `${line}${" ".repeat(line.length - line.trimStart().length)}${line.trimStart().startsWith("-") ? "- " : "z: "}*absent\n`,
    ],
  ];
  return places.flatMap((line) =>
    damage.map(([name, change]): Edit => [`${name} at ${line.trim()}`, line, change(line)]),
  );
}

function twice(): Edit[] {
  const lines = [
    "mixed-port: 7890\n",
    "mode: rule\n",
    "secret: 0123\n",
    "  enhanced-mode: fake-ip\n",
    "  stack: system\n",
    "    username: 007\n",
    "    tolerance: 50\n",
    "    behavior: domain\n",
    "  router.lan: 192.168.1.1\n",
    "    port: 7900\n",
  ];
  return lines.map((line): Edit => [`twice ${line.trim()}`, line, line + line]);
}

function sections(): Edit[] {
  const keys = [
    "hosts",
    "dns",
    "sniffer",
    "tun",
    "proxies",
    "proxy-groups",
    "listeners",
    "tunnels",
    "rule-providers",
    "sub-rules",
    "rules",
    "profile",
  ];
  return keys.flatMap((key) => [
    [`${key} as text`, `\n${key}:\n`, `\n${key}: nonsense\nunused-${key}:\n`] as Edit,
  ]);
}

function valueEdit(name: string, line: string, value: string): Edit {
  const colon = line.indexOf(":");
  return [`${name} ${line.trim()} → ${value}`, `${line}\n`, `${line.slice(0, colon)}: ${value}\n`];
}

/** Mistakes that cost only their key or entry, as in the reference; a warning says so. */
const COSTS_ITSELF =
  /^(number (routing-mark|mtu|interval)|cidr - 127|port port: 108\d → (http|1-2-3)|unknown dialer|dialer of itself|(duplicate|reserved) listener|mixed hosts|sniffer port)/;
/** No mistakes any more: `any` is `any:53`, and the format of a list says which behaviour it can have. */
const HARMLESS = new Set(["hijack", "mrs of classical"]);

/** Those that are refused. */
export function brokenConfigs(): readonly BrokenConfig[] {
  return changedConfigs().filter(({ name }) => !COSTS_ITSELF.test(name) && !HARMLESS.has(name));
}

/** Those whose mistake costs its key or entry only. */
export function partlyBrokenConfigs(): readonly BrokenConfig[] {
  return changedConfigs().filter(({ name }) => COSTS_ITSELF.test(name));
}

function changedConfigs(): readonly BrokenConfig[] {
  const edits = [
    enums,
    numbers,
    flags,
    addresses,
    ports,
    servers,
    names,
    missing,
    syntax,
    twice,
    sections,
  ].flatMap((make) => make());
  return edits.map(([name, find, replace]) => {
    const pieces = GOOD_CONFIG.split(find);
    if (pieces.length !== 2)
      throw new Error(`${name}: ${JSON.stringify(find)} stands ${pieces.length - 1} times in the good one`);
    return { name, text: pieces.join(replace) };
  });
}
