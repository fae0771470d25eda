import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { testEnv } from "../../test/support/config-env.ts";
import { cidrText } from "#net/address/cidr.ts";
import { parseConfig } from "./parse.ts";
import { good, pathErrorsOf } from "../../test/support/config-texts.ts";

test("configuration.md 17.8: policies keep file order, comma keys, prefixes, lists and single values", () => {
  const { dns } = good(`
rule-providers: {r: {type: inline, behavior: domain, payload: [a]}}
dns:
  respect-rules: true
  proxy-server-nameserver: [1.1.1.1]
  nameserver: [1.1.1.1, 1.1.1.1, "8.8.8.8#Main"]
  nameserver-policy:
    "a.com,+.b.com": [1.1.1.1, 8.8.8.8]
    "geosite:CN,private": 223.5.5.5
    "RULE-SET:r": tls://9.9.9.9
`);
  assert.deepEqual(
    dns.nameserverPolicy.map(({ conditions, servers }) => [
      conditions.map((c) => Object.values(c).join(":")),
      servers.length,
    ]),
    [
      [["domain:a.com", "domain:+.b.com"], 2],
      [["geosite:CN", "geosite:private"], 1],
      [["rule-set:r"], 1],
    ],
  );
  assert.deepEqual(
    dns.nameserver.map(({ followRules, exit }) => [followRules, exit]),
    [
      [true, null],
      [false, "Main"],
    ],
  );
  assert.equal(dns.proxyServerNameserver[0]?.followRules, false);
});

test("configuration.md 6.9: what stops a dns section", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["enable: true, nameserver: []", /nameserver cannot be empty/],
    ["respect-rules: true", /proxy-server-nameserver cannot be empty/],
    ["proxy-server-nameserver-policy: {a.com: 1.1.1.1}", /needs proxy-server-nameserver/],
    ["default-nameserver: []", /at least one nameserver/],
    ["default-nameserver: [dns.example]", /default-nameserver\[0\].*should be an IP address/],
    ["fake-ip-range: fd00::/64", /fake-ip-range must be an IPv4 prefix/],
    ["fake-ip-range6: 1.2.3.0/24", /fake-ip-range6 must be an IPv6 prefix/],
    ["fake-ip-range: 1.2.3.4/x", /fake-ip-range must be/],
    ["enhanced-mode: fake-ip, fake-ip-range: ''", /needs fake-ip-range or fake-ip-range6/],
    ["nameserver: ['foo://x']", /unknown DNS scheme "foo"/],
    ["nameserver: ['rcode://x']", /unknown rcode "x"/],
    ["nameserver-policy: {'rule-set:none': 1.1.1.1}", /rule-set "none" not found/],
    ["nameserver-policy: {'rule-set:ips': 1.1.1.1}", /has behavior ipcidr/],
    ["nameserver-policy: {'a.com.': 1.1.1.1}", /bad domain pattern/],
    ["fake-ip-filter-mode: rule, fake-ip-filter: ['DOMAIN,a,fake']", /must end in fake-ip or real-ip/],
    [
      "fake-ip-filter-mode: rule, fake-ip-filter: ['IP-CIDR,1.0.0.0/8,fake-ip']",
      /needs MATCH or one of DOMAIN/,
    ],
  ];
  const sets = "rule-providers: {ips: {type: inline, behavior: ipcidr, payload: [1.0.0.0/8]}}\n";
  for (const [fields, message] of cases)
    assert.match(pathErrorsOf(`${sets}dns: {${fields}}\n`).join("\n"), message);
});

test("fake-ip rules", () => {
  const { dns } = good(
    "dns: {fake-ip-filter-mode: rule, fake-ip-filter: ['DOMAIN-REGEX,a,b,real-ip', 'match,fake-ip']}\n",
  );
  assert.deepEqual(dns.fakeIpRules, [
    { type: "DOMAIN-REGEX", payload: "a,b", fake: false },
    { type: "MATCH", payload: "", fake: true },
  ]);
  assert.deepEqual(dns.fakeIpFilter, []);
});

test("configuration.md 17.10: the TUN address comes from fake-ip-range; 0 entries are 4096, 65537 are refused", () => {
  const { tun } = good(
    "dns: {fake-ip-range: 10.99.0.1/16}\ntun: {kernel-direct-max-entries: 0, stack: gVisor, dns-hijack: ['any:53', 'tcp://1.1.1.1:5353']}\n",
  );
  assert.deepEqual(tun.inet4Address, [{ ip: "10.99.0.1", bits: 30 }]);
  assert.deepEqual([tun.kernelDirectMaxEntries, tun.stack], [4096, "gvisor"]);
  assert.deepEqual(tun.dnsHijack, [
    { host: "0.0.0.0", port: 53 },
    { host: "1.1.1.1", port: 5353 },
  ]);
  assert.equal(good("tun: {kernel-direct-max-entries: 65536}\n").tun.kernelDirectMaxEntries, 65_536);
  assert.match(pathErrorsOf("tun: {kernel-direct-max-entries: 65537}\n").join(), /kernel-direct-max-entries/);
});

test("kernel-direct.md 1: marks and sizes of 0 are the defaults", () => {
  const { tun: unset } = good("mode: rule\n");
  const keys = [
    "auto-redirect-input-mark",
    "auto-redirect-output-mark",
    "kernel-direct-ebpf-mark",
    "kernel-direct-ebpf-proxy-mark",
    "kernel-direct-ebpf-max-entries",
    "kernel-direct-ebpf-flow-entries",
  ];
  assert.deepEqual(good(`tun: {${keys.map((key) => `${key}: 0`).join(", ")}}\n`).tun, unset);
  assert.match(pathErrorsOf("tun: {auto-redirect-input-mark: -1}\n").join(), /auto-redirect-input-mark/);
});

test("kernel-direct.md 1.1: what the keys demand of each other, also while the TUN is off", () => {
  const base = "auto-redirect: true, kernel-direct: true";
  const ebpf = `${base}, kernel-direct-ebpf: true, kernel-direct-ebpf-interfaces: [br0]`;
  const cases: readonly (readonly [string, RegExp])[] = [
    ["kernel-direct: true", /kernel-direct requires auto-route and auto-redirect/],
    [
      "kernel-direct-ebpf: true, kernel-direct-ebpf-interfaces: [a]",
      /kernel-direct-ebpf requires kernel-direct/,
    ],
    ["kernel-direct-ebpf-required: true", /kernel-direct-ebpf-required requires kernel-direct-ebpf/],
    [`${base}, kernel-direct-ebpf: true`, /requires at least one of kernel-direct-ebpf-interfaces/],
    ["kernel-direct-ebpf-proxy: true", /kernel-direct-ebpf-proxy requires kernel-direct-ebpf/],
    [`${ebpf}, kernel-direct-ebpf-proxy-redirect: true`, /requires kernel-direct-ebpf-proxy/],
    ["kernel-direct-ebpf-direct-prefixes: [1.0.0.0/8]", /direct-prefixes requires kernel-direct-ebpf/],
    [
      `${ebpf}, kernel-direct-ebpf-proxy-prefixes: [1.0.0.0/8]`,
      /proxy-prefixes requires kernel-direct-ebpf-proxy/,
    ],
    [`${ebpf}, kernel-direct-ebpf-mark: 0x2000`, /must not share a bit/],
    [
      `${ebpf}, kernel-direct-ebpf-proxy: true, kernel-direct-ebpf-proxy-mark: 0x40000000`,
      /must not share a bit/,
    ],
    ["auto-route: false, auto-redirect: true", /auto-redirect requires auto-route/],
    ["on-exit: closed, auto-route: false", /on-exit: closed requires auto-route/],
    ["include-interface: [a], exclude-interface: [b]", /exclude each other/],
    ["route-address-set: [nope]", /rule-set "nope" not found/],
    ["include-uid-range: [5-9]", /expected a range such as 1000:1999/],
  ];
  for (const [fields, message] of cases) assert.match(pathErrorsOf(`tun: {${fields}}\n`).join("\n"), message);
  good(`tun: {${ebpf}, kernel-direct-ebpf-proxy: true, kernel-direct-ebpf-proxy-redirect: true}\n`);
});

test("the sniffer's ports, defaults and old form", () => {
  const { sniffer } = good(
    "sniffer: {override-destination: false, sniff: {http: {ports: [80, 8080-8880]}, TLS: {override-destination: true}}, skip-src-address: [10.0.0.1/8, 'geoip:CN']}\n",
  );
  assert.deepEqual(sniffer.sniff, [
    {
      protocol: "HTTP",
      ports: [
        { from: 80, to: 80 },
        { from: 8080, to: 8880 },
      ],
      overrideDestination: false,
    },
    { protocol: "TLS", ports: [{ from: 443, to: 443 }], overrideDestination: true },
  ]);
  assert.deepEqual(
    sniffer.skipSrcAddress.map((item) => (item.kind === "cidr" ? cidrText(item.cidr) : item.kind)),
    ["10.0.0.0/8", "geoip"],
  );
  assert.deepEqual(
    good("sniffer: {sniffing: [tls], port-whitelist: [443, 8443]}\n").sniffer.sniff[0]?.ports.length,
    2,
  );
});

const RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
const SECRET = "x".repeat(32);

test("the manager's block", () => {
  const listener = "listeners: [{name: l, type: vless, users: [{uuid: u}]}, {name: s, type: socks}]\n";
  const { svc } = good(
    `${listener}svc: {secret: ${SECRET}, public-base-url: "https://a.example/x//", managed-listeners: [l]}\n`,
  );
  assert.deepEqual(
    [svc?.publicBaseUrl, svc?.store, svc?.managedListeners],
    ["https://a.example/x", "svc-state.db", ["l"]],
  );
  const cases: readonly (readonly [string, RegExp])[] = [
    ["{}", /secret .*is required/],
    ["{secret: short}", /at least 32 bytes/],
    [`{secret: " ${SECRET}"}`, /begin or end with a blank/],
    [`{secret: ${SECRET}, public-base-url: "http://a.example"}`, /expected an absolute https/],
    [`{secret: ${SECRET}, public-base-url: "https://u@a.example"}`, /expected an absolute https/],
    [`{secret: ${SECRET}, public-base-url: "https://a.example/?"}`, /expected an absolute https/],
    [`{secret: ${SECRET}, store: /etc/x}`, /not safe/],
    [`{secret: ${SECRET}, managed-listeners: [m]}`, /managed listener m not found/],
    [`{secret: ${SECRET}, managed-listeners: [l, l]}`, /named twice/],
    [`{secret: ${SECRET}, managed-listeners: [s]}`, /has type socks/],
    [
      `{secret: ${SECRET}, backup: {folder: b, passphrase-file: p, recipients: [${RECIPIENT}]}}`,
      /svc\.backup\.recipients.*exclude each other/,
    ],
  ];
  for (const [block, message] of cases)
    assert.match(pathErrorsOf(`${listener}svc: ${block}\n`).join("\n"), message);
  for (const [block] of cases) assert.ok(!pathErrorsOf(`svc: ${block}\n`).join().includes(SECRET));
});

test("the block of updates", () => {
  const key = (type: "ed25519" | "x25519") => {
    const { publicKey } = type === "ed25519" ? generateKeyPairSync("ed25519") : generateKeyPairSync("x25519");
    return publicKey.export({ type: "spki", format: "pem" }).toString();
  };
  const written = (url: string, pem: string, more = "") =>
    `update: {url: "${url}", public-key: ${JSON.stringify(pem)}${more}}\n`;
  const own = key("ed25519");
  assert.deepEqual(good(written("http://a.example/r", own)).update, {
    url: "http://a.example/r",
    publicKey: own,
    proxy: "",
    byController: false,
  });
  assert.equal(good(written("https://a.example/", "release.pub")).update?.publicKey, "release.pub");
  assert.equal(good("mode: rule\n").update, null);
  const secret = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
  for (const [block, message] of [
    ["update: {}\n", /url .*is required/],
    [written("ftp://a.example/", own), /beginning with http/],
    [written("https://a.example/?x", own), /must not have a query/],
    [written("https://a.example/", key("x25519")), /expected an Ed25519 public key/],
    [written("https://a.example/", String(secret)), /expected an Ed25519 public key/],
    [written("https://a.example/", own, ", proxy: Oslo"), /update\.proxy: proxy Oslo not found/],
  ] as const)
    assert.match(pathErrorsOf(block).join("\n"), message);
});

test("the block of a node of a fleet", () => {
  const written = (fleet: string) => `svc: {secret: ${SECRET}, fleet: ${fleet}}\n`;
  const { svc } = good(
    written(`{dsn: "postgres://u:p@db/weir", node: fra-1, address: fra-1.example.com, labels: {region: eu}}`),
  );
  assert.deepEqual(svc?.fleet, {
    dsn: "postgres://u:p@db/weir",
    dsnFile: null,
    ca: null,
    node: "fra-1",
    address: "fra-1.example.com",
    labels: { region: "eu" },
    onPartition: "allow",
  });
  assert.equal(good(`svc: {secret: ${SECRET}}\n`).svc?.fleet, null);
  const cases: readonly (readonly [string, RegExp])[] = [
    [`{dsn: "postgres://u:hidden@db/weir", dsn-file: dsn.txt}`, /dsn is there already/],
    [`{dsn: "postgres://u:hidden@db/weir?sslmode=require"}`, /does not verify the server/],
    [`{dsn: "mysql://u:hidden@db/weir"}`, /expected postgres:/],
    [`{dsn-file: /etc/shadow}`, /not safe/],
    [`{ca: /etc/other.pem}`, /not safe/],
    [`{node: "a b"}`, /letters, digits, dots/],
    [`{address: "a:b@c"}`, /host name or an address/],
    [`{on-partition: hope}`, /expected one of allow, overage, stop/],
  ];
  for (const [block, message] of cases) {
    const errors = pathErrorsOf(written(block)).join("\n");
    assert.match(errors, message);
    assert.ok(!errors.includes("hidden"), errors);
  }
});

test("tls: a client CA alone asks for certificates; a verifying type needs a CA", () => {
  assert.equal(good("tls: {client-auth-cert: ca.pem}\n").tls.clientAuthType, "require-and-verify");
  assert.match(pathErrorsOf("tls: {client-auth-type: verify-if-given}\n").join(), /needs client-auth-cert/);
  assert.match(pathErrorsOf("tls: {client-auth-type: requiere-any}\n").join(), /did you mean "require-any"/);
});

test("an HTTPS Controller without a certificate is warned about", () => {
  const { warnings } = parseConfig("external-controller-tls: :9443\n", testEnv());
  assert.match(warnings[0]?.message ?? "", /needs tls\.certificate and tls\.private-key/);
});

test("a subscription's address does not enter a message", () => {
  const { warnings } = good("proxy-providers: {p: {type: http, url: 'htps://a.example/sub?token=SECRET'}}\n");
  assert.match(warnings[0]?.message ?? "", /got one beginning with "htps"; nothing is fetched/);
  assert.ok(!JSON.stringify(warnings).includes("SECRET"));
});

test("providers: default paths, overrides, required keys", () => {
  const { proxyProviders, ruleProviders } = good(`
proxy-providers:
  p: {Type: http, URL: "https://a.example/x", interval: 3600, health-check: {enable: true, url: "https://b.example"}, override: {udp: yes, proxy-name: [{pattern: "a(?i)b", target: c}]}, header: {User-Agent: [x, y], Accept: z}}
rule-providers:
  r: {type: http, url: "https://a.example/y", behavior: ipcidr, format: mrs}
`);
  const provider = proxyProviders.get("p");
  assert.match(provider?.path ?? "", /^proxies\/[0-9a-f]{32}$/);
  assert.deepEqual(
    [provider?.healthCheck?.interval, provider?.healthCheck?.timeout, provider?.override.udp],
    [300, 5000, true],
  );
  assert.deepEqual(provider?.header, { "User-Agent": ["x", "y"], Accept: ["z"] });
  assert.match(ruleProviders.get("r")?.path ?? "", /^rules\/[0-9a-f]{32}$/);
});
