/** VLESS (with Vision), Trojan, VMess and AnyTLS through our REALITY server, from options as in a file. */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { createServer } from "node:tls";
import { test } from "node:test";
import type { Protocol } from "#core/protocol.ts";
import { anytls } from "#protocols/anytls/index.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { makeCertificate } from "../support/certificate.ts";
import { exchange } from "../support/exchange.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";

const { d: privateKey, x: publicKey } = generateKeyPairSync("x25519").privateKey.export({ format: "jwk" });
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const flow = "xtls-rprx-vision";

async function openSite() {
  const { cert, key } = makeCertificate({ names: ["site.test"] });
  const sockets = new Set<Socket>();
  const server = createServer({ cert, key });
  server
    .on("tlsClientError", () => {})
    .on("connection", (socket: Socket) => {
      sockets.add(socket.on("error", () => {}));
    });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

type Row = readonly [string, Protocol, object, object];
const ROWS: readonly Row[] = [
  ["vless", vless, { users: [{ uuid }] }, { uuid, servername: "site.test" }],
  ["vless with Vision", vless, { users: [{ uuid, flow }] }, { uuid, flow, servername: "site.test" }],
  ["trojan", trojan, { users: [{ username: "u", password: "p" }] }, { password: "p", sni: "site.test" }],
  [
    "vmess",
    vmess,
    { users: [{ uuid, alterId: 0 }] },
    { uuid, alterId: 0, cipher: "auto", servername: "site.test" },
  ],
  ["anytls", anytls, { users: { u: "p" } }, { password: "p", sni: "site.test" }],
];

for (const [name, protocol, server, client] of ROWS)
  test(`1 MiB each way: ${name}`, async () => {
    await using site = await openSite();
    const reality = {
      dest: `127.0.0.1:${site.port}`,
      "private-key": privateKey,
      "short-id": ["01"],
      "server-names": ["site.test"],
    };
    await using serving = await openServer(protocol, { ...server, "reality-config": reality });
    const keys = { "public-key": publicKey, "short-id": "01", "support-x25519mlkem768": true };
    const node = { server: "127.0.0.1", port: serving.port, tls: true, "reality-opts": keys, ...client };
    await using outbound = await openClient(protocol, node);
    await exchange(outbound, 1 << 20);
  });
