/** The cells of the matrix: what is spoken, apart from who speaks it. */
import { makeCertificate } from "../certificate.ts";
import { type EncryptionCell, encryptionCells } from "./encryption.ts";
import type { RealityCell } from "./reality.ts";

export const NAME = "server.test";
export const certificate = makeCertificate({ names: [NAME] });
export const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
export const password = "correct-horse";
export const PATH = "/way";
/** Of gRPC: the one that is used where none is set. */
export const SERVICE = "GunService";
export const VISION = "xtls-rprx-vision";

export type Protocol =
  | "vless"
  | "vmess"
  | "trojan"
  | "ss"
  | "anytls"
  | "hysteria2"
  | "tuic"
  | "http"
  | "socks5";
export type Network = "tcp" | "ws" | "httpupgrade" | "grpc" | "h2" | "xhttp";

export interface Cell {
  readonly name: string;
  readonly protocol: Protocol;
  readonly network: Network;
  readonly tls: boolean;
  readonly vision: boolean;
  /** Of ss and vmess. */
  readonly cipher: string;
  /** Of ss: the server's key and its one user's; null: one key. */
  readonly keys: { readonly server: string; readonly user: string } | null;
  readonly key: string;
  /** sing-mux, or the mux.cool of the ray family. */
  readonly mux: "none" | "smux" | "yamux" | "h2mux" | "cool";
  readonly padding: boolean;
  readonly udp: "none" | "native" | "xudp" | "packetaddr" | "uot" | "quic";
  readonly xhttpMode: string;
  /** What TLS offers, where it is not the carrier's usual. */
  readonly alpn: readonly string[] | null;
  /** Of ss. */
  readonly plugin: "none" | "obfs-http" | "obfs-tls" | "v2ray-plugin" | "v2ray-plugin without mux";
  /** The password of hysteria2's salamander; empty: packets as they are. */
  readonly salamander: string;
  /** In place of TLS; null: it is TLS. */
  readonly reality: RealityCell | null;
  /** The client hides the server's name (Encrypted ClientHello). */
  readonly ech: boolean;
  /** VLESS Encryption; null: none. */
  readonly encryption: EncryptionCell | null;
}

function cell(name: string, protocol: Protocol, more: Partial<Cell> = {}): Cell {
  const udp = protocol === "http" ? "none" : protocol === "vless" ? "xudp" : "native";
  return {
    name: `${protocol} ${name}`,
    protocol,
    network: "tcp",
    tls: true,
    vision: false,
    cipher: "",
    keys: null,
    key: password,
    mux: "none",
    padding: false,
    udp,
    xhttpMode: "",
    alpn: null,
    plugin: "none",
    salamander: "",
    reality: null,
    ech: false,
    encryption: null,
    ...more,
  };
}

const base64 = (size: number, fill: number): string => Buffer.alloc(size, fill).toString("base64");
const ss = (cipher: string, more: Partial<Cell> = {}) => cell(cipher, "ss", { tls: false, cipher, ...more });
const singMux = (["smux", "yamux", "h2mux"] as const).flatMap((mux) => [
  cell(mux, "trojan", { mux }),
  cell(`${mux} padded`, "vless", { mux, padding: true }),
  ss("aes-128-gcm", { name: `ss ${mux}`, mux }),
  cell(mux, "vmess", { mux, tls: false, cipher: "aes-128-gcm" }),
]);

const reality = (name: string, protocol: Protocol, more: Partial<Cell & RealityCell> = {}): Cell => {
  const { group = "X25519", mldsa65 = false, ...others } = more;
  return cell(`reality ${name}`.trim(), protocol, { reality: { group, mldsa65, dest: 0 }, ...others });
};
/** Without tickets: a client that has resumed knows no key of its server's before that one's first record. */
const roundTripEncryption = encryptionCells()[1] ?? null;
const HYBRID = { group: "X25519MLKEM768" } as const;

export const CELLS: readonly Cell[] = [
  cell("bare", "vless", { tls: false }),
  cell("tls", "vless"),
  cell("tls packetaddr", "vless", { udp: "packetaddr" }),
  cell("tls plain udp", "vless", { udp: "native" }),
  cell("bare plain udp", "vless", { tls: false, udp: "native" }),
  ...(["ws", "h2"] as const).map((network) =>
    cell(`${network} plain udp`, "vless", { network, udp: "native" }),
  ),
  cell("vision", "vless", { vision: true }),
  cell("ws", "vless", { network: "ws" }),
  cell("httpupgrade", "vless", { network: "httpupgrade" }),
  cell("grpc", "vless", { network: "grpc" }),
  cell("grpc TCP", "vless", { network: "grpc", udp: "none" }),
  cell("h2", "vless", { network: "h2" }),
  cell("xhttp packet-up", "vless", { network: "xhttp", xhttpMode: "packet-up" }),
  cell("xhttp stream-up", "vless", { network: "xhttp", xhttpMode: "stream-up" }),
  cell("xhttp stream-one", "vless", { network: "xhttp", xhttpMode: "stream-one" }),
  ...["packet-up", "stream-up", "stream-one"].map((xhttpMode) =>
    cell(`xhttp ${xhttpMode} over HTTP/1.1`, "vless", { network: "xhttp", xhttpMode, alpn: ["http/1.1"] }),
  ),
  ...["packet-up", "stream-up", "stream-one"].map((xhttpMode) =>
    cell(`xhttp ${xhttpMode} over HTTP/3`, "vless", { network: "xhttp", xhttpMode, alpn: ["h3"] }),
  ),
  cell("mux.cool", "vless", { mux: "cool", udp: "native" }),
  cell("mux.cool", "trojan", { mux: "cool" }),
  ss("aes-128-gcm", { name: "ss mux.cool", mux: "cool" }),
  cell("vision smux", "vless", { vision: true, mux: "smux" }),
  cell("tls", "trojan"),
  cell("ws", "trojan", { network: "ws" }),
  cell("grpc", "trojan", { network: "grpc" }),
  cell("aes-128-gcm", "vmess", { tls: false, cipher: "aes-128-gcm" }),
  cell("chacha20-poly1305", "vmess", { tls: false, cipher: "chacha20-poly1305" }),
  cell("none over tls", "vmess", { cipher: "none" }),
  cell("zero over tls", "vmess", { cipher: "zero" }),
  cell("ws", "vmess", { network: "ws", cipher: "auto" }),
  cell("grpc", "vmess", { network: "grpc", cipher: "auto" }),
  cell("xudp", "vmess", { tls: false, cipher: "auto", udp: "xudp" }),
  cell("packetaddr", "vmess", { tls: false, cipher: "auto", udp: "packetaddr" }),
  cell("mux.cool", "vmess", { tls: false, cipher: "auto", mux: "cool", udp: "native" }),
  ss("aes-128-gcm"),
  ss("aes-256-gcm"),
  ss("chacha20-ietf-poly1305"),
  ss("aes-128-gcm", { name: "ss uot", udp: "uot" }),
  ...(["obfs-http", "obfs-tls", "v2ray-plugin", "v2ray-plugin without mux"] as const).map((plugin) =>
    ss("aes-128-gcm", { name: `ss ${plugin}`, plugin, udp: "none" }),
  ),
  ss("2022-blake3-aes-128-gcm", { key: base64(16, 1) }),
  ss("2022-blake3-aes-256-gcm", { key: base64(32, 2) }),
  ss("2022-blake3-chacha20-poly1305", { key: base64(32, 3) }),
  ...[16, 32].map((size) =>
    ss(`2022-blake3-aes-${size * 8}-gcm`, {
      name: `ss 2022-blake3-aes-${size * 8}-gcm users`,
      keys: { server: base64(size, 4), user: base64(size, 5) },
      key: `${base64(size, 4)}:${base64(size, 5)}`,
    }),
  ),
  cell("tls", "anytls", { udp: "uot" }),
  reality("", "vless"),
  reality("ML-KEM", "vless", HYBRID),
  reality("vision", "vless", { vision: true }),
  reality("vision ML-KEM", "vless", { vision: true, ...HYBRID }),
  reality("vision ML-KEM ML-DSA", "vless", { vision: true, mldsa65: true, ...HYBRID }),
  reality("ML-DSA", "vless", { mldsa65: true }),
  reality("grpc", "vless", { network: "grpc" }),
  reality("xhttp", "vless", { network: "xhttp", xhttpMode: "stream-one" }),
  reality("", "trojan"),
  reality("", "vmess", { cipher: "auto" }),
  reality("", "anytls", { udp: "uot" }),
  cell("ech", "vless", { ech: true }),
  cell("ech vision", "vless", { ech: true, vision: true }),
  cell("ech ws", "vless", { ech: true, network: "ws" }),
  cell("ech", "trojan", { ech: true }),
  cell("ech", "anytls", { ech: true, udp: "uot" }),
  ...encryptionCells().flatMap((encryption) =>
    [false, true].map((vision) =>
      cell(`encryption ${encryption.name}${vision ? " vision" : ""}`, "vless", {
        tls: false,
        encryption,
        vision,
      }),
    ),
  ),
  ...(["tcp", "ws"] as const).map((network) =>
    cell(`encryption in ${network === "ws" ? "ws" : "tls"}`, "vless", {
      network,
      encryption: roundTripEncryption,
    }),
  ),
  cell("bbr", "hysteria2"),
  cell("native", "tuic"),
  cell("quic", "tuic", { udp: "quic" }),
  cell("salamander", "hysteria2", { salamander: "in-disguise" }),
  cell("tls", "http"),
  cell("tls", "socks5"),
  ...singMux,
];
