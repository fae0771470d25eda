/** The protocols whose clients may stay with the worker that has accepted them, by name. */
import type { Protocol } from "#core/protocol.ts";
import { shadowsocks, ss } from "#protocols/shadowsocks/index.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { makeCertificate } from "./certificate.ts";
import { REALITY } from "./reality-sides.ts";

export const ids = {
  ann: "b831381d-6324-4d53-ad4f-8cda48b30811",
  bob: "11111111-2222-3333-4444-555555555555",
};
export const key = (fill: number, size = 16): string => Buffer.alloc(size, fill).toString("base64");

export interface Kind {
  readonly protocol: Protocol;
  /** Absent: the same. */
  readonly node?: Protocol;
  readonly server: object;
  readonly client: object;
}

const certificate = makeCertificate({ names: ["server.test"] });
const TLS = {
  server: { certificate: certificate.cert, "private-key": certificate.key },
  client: { tls: true, servername: "server.test", sni: "server.test", fingerprint: certificate.fingerprint },
};

const list = Object.entries(ids).map(([username, uuid]) => ({ username, uuid }));
const shadowed = (cipher: string, password: string): Kind => ({
  protocol: shadowsocks,
  node: ss,
  server: { cipher, password, udp: false },
  client: { cipher, password },
});

export const KINDS: Record<string, Kind> = {
  VLESS: {
    protocol: vless,
    server: { "allow-insecure": true, users: list },
    client: { uuid: ids.ann },
  },
  VMess: { protocol: vmess, server: { users: list }, client: { uuid: ids.ann, cipher: "aes-128-gcm" } },
  "VMess, chacha20": {
    protocol: vmess,
    server: { users: list },
    client: { uuid: ids.ann, cipher: "chacha20-poly1305" },
  },
  "Shadowsocks 2022": shadowed("2022-blake3-aes-128-gcm", key(7)),
  "Shadowsocks 2022, users": {
    protocol: shadowsocks,
    node: ss,
    server: {
      cipher: "2022-blake3-aes-256-gcm",
      password: key(1, 32),
      udp: false,
      users: { ann: key(2, 32), bob: key(3, 32) },
    },
    client: { cipher: "2022-blake3-aes-256-gcm", password: `${key(1, 32)}:${key(2, 32)}` },
  },
  "older Shadowsocks": shadowed("chacha20-ietf-poly1305", "old"),
  "VLESS in TLS": {
    protocol: vless,
    server: { ...TLS.server, users: list },
    client: { ...TLS.client, uuid: ids.ann },
  },
  "VLESS with Vision": {
    protocol: vless,
    server: { ...TLS.server, users: list.map((user) => ({ ...user, flow: "xtls-rprx-vision" })) },
    client: { ...TLS.client, uuid: ids.ann, flow: "xtls-rprx-vision" },
  },
  "VLESS in REALITY": {
    protocol: vless,
    server: { ...REALITY.server, users: list },
    client: { ...REALITY.client, uuid: ids.ann },
  },
  "Vision in REALITY": {
    protocol: vless,
    server: { ...REALITY.server, users: list.map((user) => ({ ...user, flow: "xtls-rprx-vision" })) },
    client: { ...REALITY.client, uuid: ids.ann, flow: "xtls-rprx-vision" },
  },
  "Trojan in REALITY": {
    protocol: trojan,
    server: {
      ...REALITY.server,
      users: Object.entries(ids).map(([username, password]) => ({ username, password })),
    },
    client: { ...REALITY.client, password: ids.ann },
  },
  "VMess in REALITY": {
    protocol: vmess,
    server: { ...REALITY.server, users: list },
    client: { ...REALITY.client, uuid: ids.ann, cipher: "aes-128-gcm" },
  },
  Trojan: {
    protocol: trojan,
    server: {
      ...TLS.server,
      users: Object.entries(ids).map(([username, password]) => ({ username, password })),
    },
    client: { ...TLS.client, password: ids.ann },
  },
  "VMess in TLS": {
    protocol: vmess,
    server: { ...TLS.server, users: list },
    client: { ...TLS.client, uuid: ids.ann, cipher: "aes-128-gcm" },
  },
};

/** Of those with a switch. */
export const PATH = "/switch";
const withSwitch = ({ server, client, ...kind }: Kind, isFramed: boolean): Kind => ({
  ...kind,
  server: { ...server, "ws-path": PATH },
  client: { ...client, network: "ws", "ws-opts": { path: PATH, "v2ray-http-upgrade": !isFramed } },
});
for (const name of ["VLESS", "VMess", "VLESS in TLS", "Trojan", "VMess in TLS"])
  for (const isFramed of [true, false])
    KINDS[`${name} in ${isFramed ? "WebSocket" : "HTTPUpgrade"}`] = withSwitch(KINDS[name] as Kind, isFramed);
