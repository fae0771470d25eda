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
    "outbounds[2]: wireguard is not taken (there is no such node); what would leave by it is refused",
    "outbounds[3]: vmess is not taken (no node has the transport kcp); what would leave by it is refused",
    "dns.servers[1]: names like regexp:x cannot be given to one nameserver",
    "dns.hosts: keyword:b is not taken",
  ]);
});
