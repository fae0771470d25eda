import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ConfigError } from "#core/errors.ts";
import { codePoint } from "../../../test/support/code-points.ts";
import { runs, skipLarge } from "../../../test/support/runs.ts";
import { parseLink, readLinks, renderLink, singBoxOutbound } from "./index.ts";
import { EXAMPLES, UUID } from "../../../test/support/link-examples.ts";

test("the worked examples are read, and written as the same node", () => {
  for (const [link, node] of EXAMPLES) {
    assert.deepEqual(parseLink(link), node, link);
    const written = renderLink(node) as string;
    assert.deepEqual(parseLink(written), node, written);
  }
});

test("links are written letter for letter as other clients expect them", () => {
  for (const at of [3, 5, 6, 7, 8, 10]) {
    const [link, node] = EXAMPLES[at] as (typeof EXAMPLES)[number];
    assert.equal(renderLink(node), link);
  }
});

test("a pin that cannot be read costs the link: with insecure anybody could be the server", () => {
  const pin = "ab".repeat(32);
  const read = (query: string) => parseLink(`trojan://p@e.com:1?insecure=1&${query}`)["fingerprint"];
  assert.equal(read(`pcs=${pin.toUpperCase().replaceAll(/(..)(?=.)/g, "$1:")}`), pin);
  assert.equal(read(`hpkp=${encodeURIComponent(Buffer.from(pin, "hex").toString("base64"))}`), pin);
  for (const wrong of [pin.slice(2), `${pin}ab`, "sha1~of~something"])
    assert.throws(() => read(`pcs=${wrong}`), ConfigError);
});

test("what is found in the wild", () => {
  const port = (link: string) => parseLink(link)["port"];
  assert.equal(port("trojan://p@example.com"), 443);
  assert.throws(() => parseLink(`vless://${UUID}@example.com`), ConfigError);
  assert.equal(parseLink("TROJAN://p@[2001:db8::1]:8443#a#b")["server"], "2001:db8::1");
  assert.equal(parseLink("TROJAN://p@[2001:db8::1]:8443#a#b")["name"], "a#b");
  assert.equal(parseLink("trojan://p@2001:db8::1:8443")["server"], "2001:db8::1");
  assert.equal(parseLink("trojan://p@e.com:1?sni=x&amp;allowInsecure=1")["skip-cert-verify"], true);
  assert.equal(parseLink("trojan://p%20q@e.com:1?security=")["password"], "p q");
  assert.equal(parseLink(`vless://${UUID}@e.com:1?security=&sni=`)["tls"], undefined);
  assert.deepEqual(parseLink(`ss://${Buffer.from("aes-128-gcm:te:st@1.2.3.4:80").toString("base64")}#n`), {
    name: "n",
    type: "ss",
    server: "1.2.3.4",
    port: 80,
    cipher: "aes-128-gcm",
    password: "te:st",
    udp: true,
  });
  assert.equal(parseLink(`socks://${Buffer.from("u:p").toString("base64")}@1.2.3.4:80#n`)["password"], "p");
  assert.deepEqual(parseLink("https://u:p@1.2.3.4:80#n"), {
    name: "n",
    type: "http",
    server: "1.2.3.4",
    port: 80,
    username: "u",
    password: "p",
    tls: true,
  });
  assert.equal(
    parseLink(`vless://${UUID}@e.com:1?encryption=mlkem768x25519plus.native.0rtt.x`)["encryption"],
    "mlkem768x25519plus.native.0rtt.x",
  );
  assert.throws(() => parseLink("ssr://abc"), /lacks its server/);
  assert.throws(() => parseLink("nonsense://abc"), /cannot be read/);
  const json = Buffer.from(
    JSON.stringify({ add: "e.com", port: 443, id: UUID, ps: null, aid: 0, tls: false }),
  ).toString("base64url");
  assert.equal(parseLink(`vmess://${json}`)["name"], "e.com:443");
});

test("bodies of subscriptions: lines, base64 of either alphabet, SIP008; bad lines are counted", () => {
  const lines = `trojan://p@e.com:1#a\r\n\n  trojan://p@e.com:2#a  \nfoo://x\ntrojan://p@e.com:3#a\n`;
  for (const body of [
    lines,
    Buffer.from(lines).toString("base64"),
    Buffer.from(lines).toString("base64url"),
    Buffer.from(lines)
      .toString("base64")
      .replaceAll(/(.{20})/g, "$1\n"),
  ]) {
    const read = readLinks(body);
    assert.deepEqual(
      read?.items.map(({ name }) => name),
      ["a", "a-01", "a-02"],
    );
    assert.equal(read?.skipped, 1);
  }
  const sip008 = readLinks(
    '{"version":1,"servers":[{"remarks":"x","server":"1.2.3.4","server_port":8388,"password":"p","method":"aes-128-gcm"}]}',
  );
  assert.deepEqual(sip008?.items, [
    { name: "x", type: "ss", server: "1.2.3.4", port: 8388, cipher: "aes-128-gcm", password: "p", udp: true },
  ]);
  for (const other of ["", "hello", "<html>", "{}", "[1]"]) assert.equal(readLinks(other), null, other);
});

test("whatever a link holds, reading it ends in a node or a ConfigError that does not show it", () => {
  const scheme = fc.constantFrom(
    "vless",
    "trojan",
    "anytls",
    "ss",
    "vmess",
    "socks",
    "http",
    "hysteria2",
    "tuic",
  );
  const secret = "s3cr3t";
  fc.assert(
    fc.property(
      scheme,
      fc.string({ unit: codePoint, maxLength: 80 }),
      fc.string({ maxLength: 20 }),
      (name, rest, before) => {
        try {
          parseLink(`${name}://${before}${secret}${rest}`);
        } catch (error) {
          assert.ok(error instanceof ConfigError, String(error));
          assert.ok(!error.message.includes(secret), error.message);
        }
      },
    ),
    { numRuns: runs(3000) },
  );
  for (const [link] of EXAMPLES)
    for (let length = 0; length < link.length; length++)
      try {
        parseLink(link.slice(0, length));
      } catch (error) {
        assert.ok(error instanceof ConfigError, String(error));
      }
});

test("16,000 links of one name get names of their own in linear time", { skip: skipLarge }, () => {
  const link = `vless://${UUID}@example.com:443#same`;
  const before = process.threadCpuUsage();
  const items = readLinks(`${link}\n`.repeat(16_000))?.items ?? [];
  const { user } = process.threadCpuUsage(before);
  assert.equal(new Set(items.map(({ name }) => name)).size, 16_000);
  assert.equal(items[15_999]?.["name"], "same-15999");
  assert.ok(
    user < 10_000_000,
    `${user / 1e6} s of the thread's own time; quadratic takes more than a minute`,
  );
});

test("ech: a configuration is carried both ways, a server to ask is not, and nothing is left out in silence", () => {
  const config =
    "AEn+DQBFKwAgACABWIHUGj4u+PIggYXcR5JF0gYk3dCRioBW8uJq9H4mKAAIAAEAAQABAANAEnB1YmxpYy50bHMtZWNoLmRldgAA";
  const links = [
    `vless://${UUID}@example.com:443?security=tls&sni=example.com&ech=${config}#n`,
    `trojan://letmein@example.com:443?ech=${encodeURIComponent(config)}#n`,
    `anytls://letmein@example.com:443/?ech=${encodeURIComponent(config)}#n`,
  ];
  for (const link of links) {
    const node = parseLink(link);
    assert.deepEqual(node["ech-opts"], { enable: true, config });
    assert.deepEqual(parseLink(renderLink(node) ?? ""), node);
  }
  const vmess = { ...parseLink(links[0] ?? ""), type: "vmess", alterId: 0, cipher: "auto" };
  assert.deepEqual(parseLink(renderLink(vmess) ?? "")["ech-opts"], { enable: true, config });
  const asked = (ech: string): unknown =>
    parseLink(`vless://${UUID}@example.com:443?security=tls&ech=${encodeURIComponent(ech)}`)["ech-opts"];
  assert.deepEqual(asked("https://1.1.1.1/dns-query"), { enable: true });
  assert.deepEqual(asked("a.example.org+udp://1.1.1.1"), {
    enable: true,
    "query-server-name": "a.example.org",
  });
  const asking = { ...parseLink(links[0] ?? ""), "ech-opts": { enable: true } };
  assert.throws(() => renderLink(asking), /ech-opts without config/);
  const off = { ...asking, "ech-opts": { enable: false } };
  assert.equal(renderLink(off)?.includes("ech"), false);
  assert.deepEqual(singBoxOutbound(parseLink(links[0] ?? ""))?.["tls"], {
    enabled: true,
    server_name: "example.com",
    ech: { enabled: true, config: ["-----BEGIN ECH CONFIGS-----", config, "-----END ECH CONFIGS-----"] },
  });
});

test("several hosts of h2: the first is asked for, all are kept", () => {
  const node = parseLink(`vless://${UUID}@e.com:443?security=tls&type=h2&host=a.example,b.example&path=/p#n`);
  assert.equal(node["servername"], "a.example");
  assert.deepEqual(node["h2-opts"], { path: "/p", host: ["a.example", "b.example"] });
  assert.match(renderLink(node) ?? "", /[?&]host=a\.example%2Cb\.example/);
});

test("hysteria2: lists of ports", () => {
  const node = parseLink("hy2://p@e.com:443,5000-6000/?sni=x#n");
  assert.deepEqual([node["port"], node["ports"]], [443, "443,5000-6000"]);
  assert.match(renderLink(node) ?? "", /e\.com:443\/\?.*mport=443%2C5000-6000/);
  assert.equal(parseLink("hy2://p@[::1]:20000-30000#n")["ports"], "20000-30000");
});

test("xhttp: extra carries the keys of the file, and back", () => {
  const extra = encodeURIComponent(
    JSON.stringify({
      noGRPCHeader: true,
      scMaxEachPostBytes: "1000-2000",
      xPaddingBytes: "5-6",
      xmux: { a: 1 },
    }),
  );
  const node = parseLink(
    `vless://${UUID}@e.com:443?type=xhttp&host=h.example&path=/p&mode=stream-up&extra=${extra}#n`,
  );
  assert.deepEqual(node["xhttp-opts"], {
    path: "/p",
    host: "h.example",
    mode: "stream-up",
    "no-grpc-header": true,
    "sc-max-each-post-bytes": "1000-2000",
    "x-padding-bytes": "5-6",
    "reuse-settings": { a: 1 },
  });
  const again = parseLink(renderLink(node) ?? "")["xhttp-opts"];
  assert.deepEqual(again, {
    path: "/p",
    host: "h.example",
    mode: "stream-up",
    "no-grpc-header": true,
    "sc-max-each-post-bytes": "1000-2000",
  });
  assert.throws(() => parseLink(`vless://${UUID}@e.com:443?type=xhttp&extra=%7B#n`), /extra is no JSON/);
});

test("links of protocols that are not spoken here are nodes with their names", () => {
  const remarks = Buffer.from("日本 1").toString("base64url");
  const ssr = Buffer.from(`e.com:443:origin:rc4-md5:plain:cA/?remarks=${remarks}&group=x`).toString(
    "base64url",
  );
  const names = (links: string) => readLinks(links)?.items.map(({ name, type }) => [name, type]);
  assert.deepEqual(
    names(`ssr://${ssr}\nhysteria://e.com:1?auth=x#hy\nssh://key@e.com:2#w\ntuic://token@e.com:3#t`),
    [
      ["日本 1", "ssr"],
      ["hy", "hysteria"],
      ["w", "ssh"],
      ["t", "tuic"],
    ],
  );
});

test("links of WireGuard are read in the spellings of several programs, and written", () => {
  const key = "eCtXsJZ27+4PbhDkHnB923tkUn2Gj59wZw5wFA75MnU=";
  const publicKey = "bmXOC+F1FxEMF9dyiK2H5/1SUtzH0JuVo51h2wPfgyo=";
  const node = {
    name: "warp",
    type: "wireguard",
    server: "162.159.192.1",
    port: 2408,
    udp: true,
    "private-key": key,
    "public-key": publicKey,
    ip: "172.16.0.2/32",
    ipv6: "2606:4700::2/128",
    reserved: [209, 98, 59],
  };
  const user = encodeURIComponent(key);
  const address = "address=172.16.0.2/32,2606:4700::2/128";
  for (const query of [
    `publickey=${encodeURIComponent(publicKey)}&${address}&reserved=209,98,59`,
    `publicKey=${publicKey}&${address}&reserved=209%2C98%2C59`,
  ])
    assert.deepEqual(parseLink(`wireguard://${user}@162.159.192.1:2408?${query}#warp`), node);
  assert.deepEqual(parseLink(renderLink(node) ?? ""), node);
  assert.deepEqual(
    parseLink(`wg://${user}@e.com?publickey=${encodeURIComponent(publicKey)}&ip=10.0.0.2&mtu=1280#n`),
    {
      name: "n",
      type: "wireguard",
      server: "e.com",
      port: 51_820,
      udp: true,
      "private-key": key,
      "public-key": publicKey,
      ip: "10.0.0.2",
      mtu: "1280",
    },
  );
  const spaced = parseLink(
    `wireguard://${user}@e.com:1?publickey=${encodeURIComponent(publicKey)}&address=10.0.0.2/32, fd00::2/128#n`,
  );
  assert.deepEqual([spaced["ip"], spaced["ipv6"]], ["10.0.0.2/32", "fd00::2/128"]);
  assert.equal(renderLink({ name: "n", type: "wireguard", "private-key": key, peers: [{}] }), null);
  assert.throws(() => parseLink(`wireguard://${user}@e.com:1#n`), /has no public key of its server/);
});
