/** Every pair of a client and a listener of ours, in every form that changes the bytes between them. */
import type { Protocol } from "#core/protocol.ts";
import { toDestination } from "#net/address/ip.ts";
import { anytls } from "#protocols/anytls/index.ts";
import { http } from "#protocols/http/index.ts";
import { mixed } from "#protocols/mixed/index.ts";
import { shadowsocks, ss } from "#protocols/shadowsocks/index.ts";
import { socks, socks5 } from "#protocols/socks/index.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { vless } from "#protocols/vless/index.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { makeCertificate } from "./certificate.ts";
import { connectTwice, plainRequest, type PlainRequest, socks4 } from "./torn-clients.ts";
import { DESTINATION, PAYLOAD, type TornRow } from "./torn-peers.ts";

type Options = Readonly<Record<string, unknown>>;
type More = Omit<TornRow, "name" | "server" | "serverOptions" | "client" | "clientOptions">;

const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const bare = { "allow-insecure": true };
const DATAGRAMS = { datagrams: DESTINATION } as const;
/** For framings that know addresses only. */
const TO_ADDRESS = { datagrams: toDestination("192.0.2.9", 443) } as const;
/** Request and answer are the same for every client at any time. */
const ANSWERS_ALONE = { answersAlone: true } as const;

function row(
  name: string,
  [server, serverOptions]: readonly [Protocol, Options],
  [client, clientOptions]: readonly [Protocol, Options],
  more: More = {},
): TornRow {
  return { name, server, serverOptions, client, clientOptions, ...more };
}

const vlessRow = (name: string, server: Options, client: Options, more?: More): TornRow =>
  row(
    `vless, ${name}`,
    [vless, { ...bare, users: [{ uuid }], ...server }],
    [vless, { uuid, udp: true, ...client }],
    more,
  );

const smux = (protocol: string, padding = false) => ({ smux: { enabled: true, protocol, padding } });

const vlessRows: readonly TornRow[] = [
  vlessRow("bare", {}, {}, ANSWERS_ALONE),
  vlessRow("XUDP", {}, {}, { ...DATAGRAMS, ...ANSWERS_ALONE }),
  vlessRow("packetaddr", {}, { "packet-encoding": "packetaddr" }, { ...TO_ADDRESS, ...ANSWERS_ALONE }),
  vlessRow("plain datagrams", {}, { "packet-encoding": "none" }, { ...DATAGRAMS, ...ANSWERS_ALONE }),
  ...(["native", "xorpub", "random"] as const).map((appearance) => {
    const { client: encryption, server: decryption } = newEncryption(appearance, "x25519");
    return vlessRow(
      `encryption, ${appearance}`,
      { decryption },
      { encryption },
      { unrepeatable: true, step: 31 },
    );
  }),
  vlessRow("ws", { "ws-path": "/ws" }, { network: "ws", "ws-opts": { path: "/ws" } }),
  vlessRow("ws with early data", { "ws-path": "/ws" }, { network: "ws", "ws-opts": { path: "/ws?ed=2048" } }),
  vlessRow(
    "HTTPUpgrade",
    { "ws-path": "/u" },
    { network: "ws", "ws-opts": { path: "/u", "v2ray-http-upgrade": true } },
  ),
  vlessRow(
    "HTTPUpgrade, fast open",
    { "ws-path": "/u" },
    {
      network: "ws",
      "ws-opts": { path: "/u", "v2ray-http-upgrade": true, "v2ray-http-upgrade-fast-open": true },
    },
  ),
  vlessRow(
    "gRPC",
    { "grpc-service-name": "G" },
    { network: "grpc", "grpc-opts": { "grpc-service-name": "G" } },
    { step: 3 },
  ),
  vlessRow(
    "h2",
    { "h2-config": { host: ["a.test"], path: "/h" } },
    { network: "h2", tls: true, "skip-cert-verify": true, "h2-opts": { host: ["a.test"], path: "/h" } },
    { underTls: ["h2"], step: 11 },
  ),
  ...["packet-up", "stream-one", "stream-up"].flatMap((mode) =>
    [["h2"], ["http/1.1"]].map((alpn) =>
      vlessRow(
        `XHTTP ${mode} over ${alpn[0]}`,
        { "xhttp-config": { path: "/x" } },
        { network: "xhttp", alpn, "xhttp-opts": { path: "/x", mode, "sc-min-posts-interval-ms": 0 } },
        {
          step: 11,
          ...(alpn[0] === "http/1.1" && mode !== "stream-one" ? { unrepeatable: true as const } : {}),
        },
      ),
    ),
  ),
  ...["smux", "yamux", "h2mux"].map((protocol) => vlessRow(protocol, {}, smux(protocol))),
  ...["smux", "yamux", "h2mux"].map((protocol) =>
    vlessRow(`${protocol}, padded`, { "mux-option": { padding: true } }, smux(protocol, true), {
      step: 37,
    }),
  ),
  vlessRow("datagrams in smux", {}, smux("smux"), DATAGRAMS),
  vlessRow("mux.cool", {}, smux("mux.cool"), ANSWERS_ALONE),
  vlessRow("datagrams in mux.cool", {}, smux("mux.cool"), { ...DATAGRAMS, ...ANSWERS_ALONE }),
];

function visionRow(): TornRow {
  const flow = "xtls-rprx-vision";
  const { cert: certificate, key } = makeCertificate({ names: ["server.test"] });
  return vlessRow(
    "vision over TLS",
    { certificate, "private-key": key, users: [{ uuid, flow }] },
    { tls: true, flow, servername: "server.test", "skip-cert-verify": true },
    { step: 37, unrepeatable: true },
  );
}

const underTls = (client: Options): Options => ({
  sni: "server.test",
  "skip-cert-verify": true,
  udp: true,
  ...client,
});
const trojanRow = (name: string, client: Options, more: More = {}, server: Options = {}): TornRow =>
  row(
    `trojan, ${name}`,
    [trojan, { ...bare, users: [{ password: "p" }], ...server }],
    [trojan, underTls({ password: "p", ...client })],
    { underTls: [], ...more },
  );
const anytlsRow = (name: string, more: More): TornRow =>
  row(`anytls, ${name}`, [anytls, { ...bare, users: { ann: "p" } }], [anytls, underTls({ password: "p" })], {
    underTls: [],
    step: 11,
    ...more,
  });

const ssRow = (name: string, cipher: string, client: Options = {}, more?: More): TornRow => {
  const password = cipher.startsWith("2022")
    ? Buffer.alloc(cipher.includes("128") ? 16 : 32, 7).toString("base64")
    : "p";
  return row(
    `ss, ${name}`,
    [shadowsocks, { cipher, password, udp: false }],
    [ss, { cipher, password, udp: true, ...client }],
    more,
  );
};
const uot = (version: number) => ({ "udp-over-tcp": true, "udp-over-tcp-version": version });

function identityRow(): TornRow {
  const [server, user] = [3, 4].map((byte) => Buffer.alloc(16, byte).toString("base64")) as [string, string];
  const cipher = "2022-blake3-aes-128-gcm";
  return row(
    "ss, 2022 with identity header",
    [shadowsocks, { cipher, password: server, udp: false, users: { ann: user } }],
    [ss, { cipher, password: `${server}:${user}` }],
  );
}

const vmessRow = (name: string, client: Options, more?: More, server: Options = {}): TornRow =>
  row(
    `vmess, ${name}`,
    [vmess, { users: [{ uuid }], ...server }],
    [vmess, { uuid, udp: true, ...client }],
    more,
  );

const LENGTH = { "content-length": `${PAYLOAD.length}` };
const plainRow = (name: string, request: PlainRequest, more: More = ANSWERS_ALONE): TornRow =>
  row(`plain request, ${name}`, [mixed, {}], [plainRequest(request), {}], { web: true, ...more });

const plainRows: readonly TornRow[] = [
  plainRow("GET", { method: "GET" }),
  plainRow("POST with a length", { method: "POST", headers: LENGTH }),
  plainRow("POST in chunks", { method: "POST" }),
  plainRow("the second of its connection", { method: "POST", headers: LENGTH, isSecond: true }, {}),
];

const account = { username: "ann", password: "p" };

export const TORN_ROWS: readonly TornRow[] = [
  ...vlessRows,
  visionRow(),
  trojanRow("TCP", {}, ANSWERS_ALONE),
  trojanRow("datagrams", {}, { ...DATAGRAMS, ...ANSWERS_ALONE, step: 3 }),
  trojanRow("mux.cool", smux("mux.cool"), { ...ANSWERS_ALONE, step: 3 }),
  anytlsRow("TCP", {}),
  anytlsRow("datagrams", DATAGRAMS),
  ssRow("aes-128-gcm", "aes-128-gcm"),
  ssRow("chacha20-ietf-poly1305", "chacha20-ietf-poly1305"),
  ssRow("none", "none", {}, ANSWERS_ALONE),
  ssRow("2022 aes-256-gcm", "2022-blake3-aes-256-gcm"),
  ssRow("UDP over TCP, version 1", "aes-128-gcm", uot(1), DATAGRAMS),
  ssRow("UDP over TCP, version 2", "2022-blake3-aes-128-gcm", uot(2), DATAGRAMS),
  identityRow(),
  vmessRow("aes-128-gcm", { cipher: "aes-128-gcm" }),
  vmessRow("chacha20-poly1305, padded, sealed sizes", {
    cipher: "chacha20-poly1305",
    "global-padding": true,
    "authenticated-length": true,
  }),
  vmessRow("none", { cipher: "none" }),
  vmessRow("datagrams", {}, DATAGRAMS),
  vmessRow("XUDP", { xudp: true }, { ...DATAGRAMS, step: 3 }),
  vmessRow("packetaddr", { "packet-addr": true }, { ...TO_ADDRESS, step: 3 }),
  row("socks5", [mixed, {}], [socks5, {}], ANSWERS_ALONE),
  row("socks5 with an account", [mixed, { users: [account] }], [socks5, account], ANSWERS_ALONE),
  row("http", [mixed, {}], [http, {}], ANSWERS_ALONE),
  row("http with an account", [http, { users: [account] }], [http, account], ANSWERS_ALONE),
  row("http, asked for the account", [http, { users: [account] }], [connectTwice("ann", "p"), {}]),
  row("socks4", [mixed, {}], [socks4, {}], { streamTo: TO_ADDRESS.datagrams, ...ANSWERS_ALONE }),
  row("socks4a", [socks, {}], [socks4, {}], ANSWERS_ALONE),
  ...plainRows,
];
