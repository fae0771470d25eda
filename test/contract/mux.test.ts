/** Many streams in one connection: `smux` of a node, understood by every listener that may carry it. */
import { shadowsocks, ss } from "#protocols/shadowsocks/index.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { makeCertificate } from "../support/certificate.ts";
import { openPair } from "../support/protocol-pair.ts";
import { outboundContract } from "./outbound.ts";

const certificate = makeCertificate({ names: ["server.test"] });
const serverTls = { certificate: certificate.cert, "private-key": certificate.key };
const clientTls = { tls: true, sni: "server.test", fingerprint: certificate.fingerprint };
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const smux = (protocol: string, more: object = {}) => ({ smux: { enabled: true, protocol, ...more } });
const secret = { cipher: "aes-128-gcm", password: "p" };

for (const protocol of ["smux", "yamux", "h2mux"])
  for (const padding of [false, true])
    outboundContract(
      `shadowsocks with ${protocol}${padding ? ", padded" : ""}`,
      () =>
        openPair(shadowsocks, { ...secret, udp: false, "mux-option": { padding } }, ss, {
          ...secret,
          udp: true,
          ...smux(protocol, { padding }),
        }),
      { udp: true, boundBytes: 24 << 20 },
    );

outboundContract(
  "vless with yamux, connections of four streams",
  () =>
    openPair(vless, { "allow-insecure": true, users: [{ uuid }] }, vless, {
      uuid,
      udp: true,
      ...smux("yamux", { "max-streams": 4 }),
    }),
  { udp: true, boundBytes: 24 << 20 },
);
outboundContract(
  "vmess with smux, two connections",
  () =>
    openPair(vmess, { users: [{ uuid }] }, vmess, {
      uuid,
      udp: true,
      ...smux("smux", { "max-connections": 2 }),
    }),
  { udp: true, boundBytes: 24 << 20 },
);
outboundContract(
  "trojan with h2mux",
  () =>
    openPair(trojan, { ...serverTls, users: [{ password: "p" }] }, trojan, {
      ...clientTls,
      password: "p",
      udp: true,
      ...smux("h2mux"),
    }),
  { udp: true, boundBytes: 24 << 20 },
);
for (const [name, open] of [
  [
    "vless",
    () =>
      openPair(vless, { "allow-insecure": true, users: [{ uuid }] }, vless, {
        uuid,
        udp: true,
        ...smux("mux.cool"),
      }),
  ],
  [
    "vmess",
    () =>
      openPair(vmess, { users: [{ uuid }] }, vmess, {
        uuid,
        udp: true,
        ...smux("mux.cool", { "max-streams": 4 }),
      }),
  ],
  [
    "shadowsocks",
    () => openPair(shadowsocks, { ...secret, udp: false }, ss, { ...secret, udp: true, ...smux("mux.cool") }),
  ],
] as const)
  outboundContract(`${name} with mux.cool`, open, { udp: true, boundBytes: 24 << 20 });

for (const protocol of ["smux", "h2mux"])
  outboundContract(
    `vless with vision around ${protocol}`,
    () =>
      openPair(vless, { ...serverTls, users: [{ uuid, flow: "xtls-rprx-vision" }] }, vless, {
        ...clientTls,
        servername: "server.test",
        flow: "xtls-rprx-vision",
        uuid,
        udp: true,
        ...smux(protocol),
      }),
    { udp: true, boundBytes: 24 << 20 },
  );
