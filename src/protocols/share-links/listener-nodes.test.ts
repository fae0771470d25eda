import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import type { ListenerContext } from "#core/share-link.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { securityQuery } from "#protocols/shared/links/managed-link.ts";
import { generateEchKeyPair } from "#transport/tls13/ech/keys.ts";
import { renderLink } from "./index.ts";

const position: ListenerContext = {
  name: "in",
  server: "h.example",
  port: 443,
  serverName: "cert.example",
  accounts: [],
};
const links = (type: string, options: object, changes: Partial<ListenerContext> = {}) =>
  PROTOCOLS.find((protocol) => protocol.type === type && protocol.inbound !== undefined)
    ?.listenerNodes?.(options, { ...position, ...changes })
    .map(renderLink) ?? [];

test("every user of a listener gets a link", () => {
  assert.deepEqual(
    links("trojan", {
      users: [{ username: "bob", password: "p" }],
      certificate: "cert.pem",
      "ws-path": "/w",
    }),
    ["trojan://p@h.example:443?security=tls&sni=cert.example&type=ws&path=%2Fw#in%20bob"],
  );
  assert.deepEqual(links("anytls", { users: { ann: "x", bob: "y" }, certificate: "cert.pem" }), [
    "anytls://x@h.example:443/?sni=cert.example#in%20ann",
    "anytls://y@h.example:443/?sni=cert.example#in%20bob",
  ]);
  assert.deepEqual(
    links("tuic", { users: { "b831381d-6324-4d53-ad4f-8cda48b30811": "x" }, certificate: "c" }),
    [
      "tuic://b831381d-6324-4d53-ad4f-8cda48b30811:x@h.example:443?alpn=h3&sni=cert.example#in%20b831381d-6324-4d53-ad4f-8cda48b30811",
    ],
  );
  const hysteria2 = { users: { ann: "x" }, certificate: "cert.pem", obfs: "", "obfs-password": "" };
  assert.deepEqual(links("hysteria2", hysteria2), ["hysteria2://x@h.example:443/?sni=cert.example#in%20ann"]);
  assert.deepEqual(links("hysteria2", { ...hysteria2, obfs: "salamander", "obfs-password": "of it" }), [
    "hysteria2://x@h.example:443/?obfs=salamander&obfs-password=of%20it&sni=cert.example#in%20ann",
  ]);
  assert.deepEqual(
    links("shadowsocks", {
      cipher: "2022-blake3-aes-128-gcm",
      password: "AA==",
      users: [{ id: "ann", credential: "BB==" }],
    }),
    ["ss://2022-blake3-aes-128-gcm:AA%3D%3D%3ABB%3D%3D@h.example:443#in%20ann"],
  );
});

test("the public key of REALITY is worked out from the private one", () => {
  const { d, x } = generateKeyPairSync("x25519").privateKey.export({ format: "jwk" });
  const reality = { "private-key": d, "server-names": ["a.example"], "short-id": ["01"] };
  const [link] = links("vless", { users: [{ uuid: "u" }], "reality-config": reality });
  assert.equal(new URLSearchParams((link as string).split("?")[1]?.split("#")[0]).get("pbk"), x);
});

test("a key of Encrypted ClientHello in the file goes into links and profiles", () => {
  const { key, config } = generateEchKeyPair("www.example.com");
  const tls = { certificate: "cert.pem", "private-key": "key.pem", "ech-key": key };
  const ech = new RegExp(`[?&]ech=${encodeURIComponent(config)}(#|&)`);
  for (const [type, users] of [
    ["vless", [{ uuid: "u" }]],
    ["trojan", [{ username: "bob", password: "p" }]],
    ["anytls", { ann: "x" }],
  ] as const)
    assert.match(links(type, { users, ...tls })[0] ?? "", ech, type);
  const address = { host: "h.example", port: 443 };
  assert.equal(securityQuery(tls, address)["ech"], config);
  for (const other of ["ech.pem", key.replace("A", "%")])
    assert.equal(securityQuery({ ...tls, "ech-key": other }, address)["ech"], undefined);
});

test("listeners of plain protocols use the global accounts where they have none of their own", () => {
  const accounts = [{ username: "u", password: "p" }];
  assert.deepEqual(links("mixed", {}, { accounts }), [
    "socks://u:p@h.example:443#in%20u",
    "http://u:p@h.example:443#in%20u",
  ]);
  assert.deepEqual(links("http", { users: [] }, { accounts }), ["http://h.example:443#in"]);
  assert.deepEqual(links("tproxy", {}), []);
});

test("the link of a listener names its transport and its encryption", () => {
  const users = [{ username: "a", uuid: "u" }];
  const at = "vless://u@h.example:443?encryption=none&security=none";
  assert.deepEqual(links("vless", { users, "h2-config": { path: "/h", host: ["q.example"] } }), [
    `${at}&type=h2&host=q.example&path=%2Fh#in%20a`,
  ]);
  const xhttp = { path: "/x", host: "", mode: "auto" };
  assert.deepEqual(links("vless", { users, "xhttp-config": xhttp }), [
    `${at}&type=xhttp&path=%2Fx&mode=auto#in%20a`,
  ]);
  const tls = { certificate: "PEM", "private-key": "PEM" };
  assert.match(
    links("vless", { users, "xhttp-config": xhttp, alpn: ["h3"], ...tls })[0] ?? "",
    /[?&]alpn=h3(&|#)/,
  );
  assert.doesNotMatch(
    links("vless", { users, "xhttp-config": xhttp, alpn: ["h3", "h2"], ...tls })[0] ?? "",
    /alpn/,
  );
  assert.throws(
    () => links("vless", { users, "xhttp-config": { ...xhttp, "no-sse-header": true } }),
    /cannot carry xhttp-config\.no-sse-header,/,
  );
  const { server, client } = newEncryption("native", "x25519");
  assert.deepEqual(links("vless", { users, decryption: server }), [
    `vless://u@h.example:443?encryption=${client}&security=none&type=tcp#in%20a`,
  ]);
});
