import assert from "node:assert/strict";
import { test } from "node:test";
import { PROTOCOLS } from "#protocols/index.ts";
import { LeftOut } from "./imported.ts";
import { routingOf } from "./xray-routing.ts";

const user = { id: "u", encryption: "none", flow: "xtls-rprx-vision-udp443" };
const server = { address: "h.example", port: 443 };

test("outbounds are nodes, balancers groups, nameservers DNS", () => {
  const report = new LeftOut();
  const { rules, keys } = routingOf(
    {
      outbounds: [
        {
          tag: "far",
          protocol: "vless",
          settings: { vnext: [{ ...server, users: [user] }] },
          streamSettings: {
            network: "xhttp",
            xhttpSettings: { path: "/x" },
            security: "reality",
            realitySettings: { serverName: "s", publicKey: "KEY", shortId: "ab", fingerprint: "chrome" },
          },
        },
        {
          tag: "far2",
          protocol: "trojan",
          settings: { servers: [{ ...server, password: "p" }] },
          proxySettings: { tag: "far" },
        },
        { tag: "wg", protocol: "wireguard", settings: {} },
        {
          tag: "kcp",
          protocol: "vmess",
          settings: { ...server, id: "u" },
          streamSettings: { network: "kcp" },
        },
      ],
      routing: {
        balancers: [{ tag: "far", selector: ["far"], strategy: { type: "leastPing" } }],
        rules: [{ network: "udp", balancerTag: "far" }],
      },
      dns: {
        servers: [
          "https+local://1.1.1.1/dns-query",
          { address: "8.8.8.8", port: 5353, domains: ["geosite:cn", "regexp:x"] },
        ],
        hosts: { "domain:a.example": "10.0.0.1", "keyword:b": "10.0.0.2" },
      },
    },
    "",
    { protocols: PROTOCOLS, report },
  );
  assert.deepEqual(keys["proxies"], [
    {
      name: "far",
      type: "vless",
      server: "h.example",
      port: 443,
      uuid: "u",
      udp: true,
      flow: "xtls-rprx-vision",
      network: "xhttp",
      "xhttp-opts": { path: "/x" },
      tls: true,
      servername: "s",
      "client-fingerprint": "chrome",
      "reality-opts": { "public-key": "KEY", "short-id": "ab" },
    },
    {
      name: "far2",
      type: "trojan",
      server: "h.example",
      port: 443,
      password: "p",
      udp: true,
      "dialer-proxy": "far",
    },
  ]);
  assert.deepEqual(keys["proxy-groups"], [
    {
      name: "balancer far",
      type: "url-test",
      url: "https://www.gstatic.com/generate_204",
      interval: 300,
      proxies: ["far", "far2"],
    },
  ]);
  assert.deepEqual(keys["dns"], {
    enable: true,
    nameserver: ["https://1.1.1.1/dns-query"],
    "nameserver-policy": { "geosite:cn": ["8.8.8.8:5353"] },
  });
  assert.deepEqual(keys["hosts"], { "+.a.example": "10.0.0.1" });
  assert.deepEqual(rules, ["NETWORK,udp,balancer far", "MATCH,far"]);
  assert.deepEqual(report.lines, [
    "outbounds[2]: wireguard is not taken (it has no server); what would leave by it is refused",
    "outbounds[3]: vmess is not taken (no node has the transport kcp); what would leave by it is refused",
    "dns.servers[1]: names like regexp:x cannot be given to one nameserver",
    "dns.hosts: keyword:b is not taken",
  ]);
});

test("an outbound of WireGuard, such as WARP, is a node", () => {
  const settings = {
    secretKey: "SECRET",
    address: ["172.16.0.2/32", "2606:4700::2/128"],
    mtu: 1420,
    reserved: [1, 2, 3],
    peers: [
      {
        publicKey: "PUBLIC",
        preSharedKey: "",
        endpoint: "engage.example.com:2408",
        keepAlive: 0,
        allowedIPs: ["0.0.0.0/0", "::/0"],
      },
    ],
  };
  const read = (changed: object) => {
    const report = new LeftOut();
    const outbounds = [{ tag: "warp", protocol: "wireguard", settings: { ...settings, ...changed } }];
    const { keys } = routingOf({ outbounds }, "", { protocols: PROTOCOLS, report });
    return [keys["proxies"], report.lines];
  };
  const node = {
    name: "warp",
    type: "wireguard",
    server: "engage.example.com",
    port: 2408,
    "private-key": "SECRET",
    "public-key": "PUBLIC",
    udp: true,
    ip: "172.16.0.2/32",
    ipv6: "2606:4700::2/128",
    mtu: 1420,
    "allowed-ips": ["0.0.0.0/0", "::/0"],
    reserved: [1, 2, 3],
  };
  assert.deepEqual(read({}), [[node], []]);
  const six = [{ ...settings.peers[0], endpoint: "[2001:db8::1]:51820" }];
  assert.deepEqual(read({ peers: six })[0], [{ ...node, server: "2001:db8::1", port: 51_820 }]);
  const two = [...settings.peers, ...settings.peers];
  assert.match(String(read({ peers: two })[1]), /several servers in one outbound are not taken/);
});
