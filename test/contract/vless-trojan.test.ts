import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { makeCertificate } from "../support/certificate.ts";
import { openPair } from "../support/protocol-pair.ts";
import { outboundContract } from "./outbound.ts";

const certificate = makeCertificate({ names: ["server.test"] });
const serverTls = { certificate: certificate.cert, "private-key": certificate.key };
const clientTls = {
  tls: true,
  servername: "server.test",
  sni: "server.test",
  fingerprint: certificate.fingerprint,
};
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const flow = "xtls-rprx-vision";

outboundContract(
  "vless over TCP",
  () => openPair(vless, { "allow-insecure": true, users: [{ uuid }] }, vless, { uuid, udp: true }),
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
