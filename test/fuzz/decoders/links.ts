import { parseLink, readLinks } from "#protocols/share-links/index.ts";
import { once, type Target } from "./kinds.ts";

const UUID = "b831381d-6324-4d53-ad4f-8cda48b30811";
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const LINKS = [
  `vless://${UUID}@example.com:443?encryption=none&flow=xtls-rprx-vision&security=tls&sni=a.test&type=tcp#My%20node`,
  `vless://${UUID}@[2001:db8::1]:443?security=reality&pbk=YFpyXSpK3-6xop4X7dYhwbdZPujNvESsbEq24vgF0jw&sid=01#x`,
  `vless://${UUID}@example.com:443?security=tls&type=xhttp&path=%2Fx&mode=stream-one`,
  "trojan://p%40ss@example.com:443?sni=a.test&type=ws&path=%2Fws%3Fed%3D2048#t",
  "anytls://pass@example.com:443/?sni=a.test&insecure=1#a",
  `ss://${base64("aes-128-gcm:pass")}@192.0.2.1:8388/?plugin=obfs-local%3Bobfs%3Dhttp%3Bobfs-host%3Da#s`,
  `ss://${base64("aes-128-gcm:pass@192.0.2.1:8388")}#old`,
  `vmess://${base64(JSON.stringify({ v: "2", ps: "n", add: "a.test", port: "443", id: UUID, aid: "0", net: "ws", type: "none", host: "", path: "/", tls: "tls" }))}`,
  `socks://${base64("u:p")}@192.0.2.1:1080#s`,
  "https://u:p@a.test:443#h",
  "hysteria2://pass@a.test:443/?sni=a.test&obfs=salamander&obfs-password=x#h",
  `tuic://${UUID}:pass@a.test:443?congestion_control=bbr#t`,
].map((link) => Buffer.from(link));
const SIP008 = Buffer.from(
  JSON.stringify({
    version: 1,
    servers: [
      { id: UUID, remarks: "x", server: "a.test", server_port: 1, password: "p", method: "aes-128-gcm" },
    ],
  }),
);

export const linkTargets: readonly Target[] = [
  once("share link", LINKS, (bytes) => parseLink(bytes.toString("utf8"))),
  once(
    "subscription",
    [Buffer.from(LINKS.join("\n")), Buffer.from(base64(LINKS.join("\n"))), SIP008],
    (bytes) => readLinks(bytes.toString("utf8")),
  ),
];
