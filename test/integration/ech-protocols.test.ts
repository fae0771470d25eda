/** Every protocol with TLS over TCP through Encrypted ClientHello, from options as in a file. */
import { describe, test } from "node:test";
import type { Protocol } from "#core/protocol.ts";
import { anytls } from "#protocols/anytls/index.ts";
import { http } from "#protocols/http/index.ts";
import { socks, socks5 } from "#protocols/socks/index.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { generateEchKeyPair } from "#transport/tls13/ech/keys.ts";
import { own, PUBLIC, REAL } from "../support/ech-world.ts";
import { exchange } from "../support/exchange.ts";
import { nativeTls } from "../support/native-tls.ts";
import { openPair } from "../support/protocol-pair.ts";

const { config, key } = generateEchKeyPair(PUBLIC);
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const flow = "xtls-rprx-vision";

type Row = readonly [name: string, protocol: Protocol, server: object, client: object];
const ROWS: readonly Row[] = [
  ["vless", vless, { users: [{ uuid }] }, { uuid }],
  ["vless with Vision", vless, { users: [{ uuid, flow }] }, { uuid, flow }],
  [
    "vless over ws",
    vless,
    { users: [{ uuid }], "ws-path": "/w" },
    { uuid, network: "ws", "ws-opts": { path: "/w" } },
  ],
  [
    "vless over grpc",
    vless,
    { users: [{ uuid }], "grpc-service-name": "g" },
    { uuid, network: "grpc", "grpc-opts": { "grpc-service-name": "g" } },
  ],
  ["trojan", trojan, { users: [{ username: "u", password: "p" }] }, { password: "p" }],
  ["vmess", vmess, { users: [{ uuid, alterId: 0 }] }, { uuid, alterId: 0, cipher: "auto" }],
  ["anytls", anytls, { users: { u: "p" } }, { password: "p" }],
  ["http", http, {}, {}],
  ["socks5", { ...socks, ...socks5 }, {}, {}],
];

describe("Encrypted ClientHello under", { skip: nativeTls === null && "needs FFI" }, () => {
  for (const [name, protocol, server, client] of ROWS)
    test(name, async () => {
      const tls = { certificate: own.cert, "private-key": own.key, "ech-key": key };
      const node = {
        tls: true,
        [name.startsWith("v") ? "servername" : "sni"]: REAL,
        fingerprint: own.fingerprint,
        "ech-opts": { enable: true, config },
        ...client,
      };
      await using pair = await openPair(protocol, { ...tls, ...server }, protocol, node);
      await exchange(pair.outbound, 1 << 20);
    });
});
