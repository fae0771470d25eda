import { trojan } from "#protocols/trojan/index.ts";
import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { vless } from "#protocols/vless/index.ts";
import { openInnerGateway } from "../support/inner-layer.ts";
import { openClient, openPair, openServer } from "../support/protocol-pair.ts";
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
for (const method of ["aes-128-gcm", "CHACHA20-IETF-POLY1305"])
  outboundContract(
    `trojan with an inner layer of ${method}`,
    async () => {
      await using undo = new AsyncDisposableStack();
      const server = undo.use(
        await openServer(trojan, { "allow-insecure": true, users: [{ password: "p" }] }),
      );
      const layer = {
        method: method.toLowerCase(),
        password: "inner",
        cert: serverTls.certificate,
        key: serverTls["private-key"],
      };
      const { port } = undo.use(await openInnerGateway(server.port, layer));
      const ssOpts = { enabled: true, method, password: "inner" };
      const node = { ...clientTls, server: "127.0.0.1", port, password: "p", udp: true, "ss-opts": ssOpts };
      const outbound = undo.use(await openClient(trojan, node));
      const opened = undo.move();
      return { outbound, [Symbol.asyncDispose]: () => opened.disposeAsync() };
    },
    { udp: true },
  );
