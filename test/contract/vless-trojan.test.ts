import { trojan } from "#protocols/trojan/index.ts";
import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { vless } from "#protocols/vless/index.ts";
import { openPair } from "../support/protocol-pair.ts";
import { outboundContract } from "./outbound.ts";
import { clientTls, serverTls, uuid } from "../support/tls-sides.ts";

const flow = "xtls-rprx-vision";

outboundContract(
  "vless over TCP",
  () => openPair(vless, { "allow-insecure": true, users: [{ uuid }] }, vless, { uuid, udp: true }),
  { udp: true },
);
for (const appearance of ["native", "random"] as const)
  outboundContract(
    `vless with encryption, ${appearance}`,
    () => {
      const { client: encryption, server: decryption } = newEncryption(appearance, "mlkem768");
      return openPair(vless, { decryption, users: [{ uuid }] }, vless, { uuid, udp: true, encryption });
    },
    { udp: true },
  );
outboundContract(
  "vless over TLS with vision",
  () =>
    openPair(vless, { ...serverTls, users: [{ uuid, flow }] }, vless, {
      ...clientTls,
      uuid,
      flow,
      udp: true,
    }),
  { udp: true },
);
outboundContract(
  "vless over WebSocket and TLS",
  () =>
    openPair(vless, { ...serverTls, "ws-path": "/", users: [{ uuid }] }, vless, {
      ...clientTls,
      uuid,
      udp: true,
      network: "ws",
    }),
  { udp: true },
);
outboundContract(
  "vless over gRPC",
  () =>
    openPair(vless, { ...serverTls, "grpc-service-name": "G", users: [{ uuid }] }, vless, {
      ...clientTls,
      uuid,
      udp: true,
      network: "grpc",
      "grpc-opts": { "grpc-service-name": "G" },
    }),
  { udp: true },
);
outboundContract(
  "trojan",
  () =>
    openPair(trojan, { ...serverTls, users: [{ password: "p" }] }, trojan, {
      ...clientTls,
      password: "p",
      udp: true,
    }),
  { udp: true },
);
