/** Weir and mihomo, which read the same files. */
import { type Cell, certificate, NAME, password, PATH, SERVICE, uuid, VISION } from "./cells.ts";
import { ech as echKeys } from "./encryption.ts";
import { clashRealityClient, clashRealityServer } from "./reality.ts";
import type { Launch, Speaker } from "./speaker.ts";

interface Dialect {
  readonly program: string;
  readonly version: readonly string[];
  command(file: string): readonly string[];
  /** What it cannot do, or spells differently. */
  serves(cell: Cell): boolean;
  dials(cell: Cell): boolean;
  /** Keys of the client's file besides. */
  readonly clientKeys?: object;
}

function speaker(dialect: Dialect): Speaker {
  const launch = (config: object): Launch => ({
    command: dialect.command("{}/config.yaml"),
    files: {
      "config.yaml": JSON.stringify({ "log-level": "warning", ipv6: false, mode: "rule", ...config }),
    },
  });
  return {
    program: dialect.program,
    version: dialect.version,
    server: (cell, port) =>
      dialect.serves(cell)
        ? launch({ listeners: [listener(cell, port)], proxies: [], rules: ["MATCH,DIRECT"] })
        : null,
    client: (cell, socksPort, port) =>
      dialect.dials(cell)
        ? launch({
            "bind-address": "127.0.0.1",
            "socks-port": socksPort,
            ...dialect.clientKeys,
            proxies: [proxy(cell, port)],
            rules: ["MATCH,far"],
          })
        : null,
  };
}

const MUXES = { smux: "smux", yamux: "yamux", h2mux: "h2mux", cool: "mux.cool" };

function pluginOf({ plugin }: Cell): object {
  if (plugin === "none") return {};
  if (plugin.startsWith("v2ray-plugin")) {
    const mux = plugin === "v2ray-plugin";
    return { plugin: "v2ray-plugin", "plugin-opts": { mode: "websocket", host: NAME, path: PATH, mux } };
  }
  return { plugin: "obfs", "plugin-opts": { mode: plugin.slice(5), host: NAME } };
}

const TYPES = { ss: "shadowsocks", socks5: "socks" } as Partial<Record<string, string>>;

function listener(cell: Cell, port: number): object {
  const { protocol, network, tls, mux } = cell;
  const user = { username: "ann", password };
  const users = {
    vless: [{ username: "ann", uuid, flow: cell.vision ? VISION : "" }],
    vmess: [{ username: "ann", uuid, alterId: 0 }],
    trojan: [user],
    anytls: { ann: password },
    hysteria2: { ann: password },
    tuic: { [uuid]: password },
    http: [user],
    socks5: [user],
  } as Partial<Record<string, unknown>>;
  return {
    name: "in",
    type: TYPES[protocol] ?? protocol,
    listen: "127.0.0.1",
    port,
    ...(users[protocol] === undefined ? {} : { users: users[protocol] }),
    ...(protocol === "ss" ? ssServer(cell) : {}),
    ...(protocol === "socks5" ? { udp: true } : {}),
    ...obfs(cell),
    ...(tls ? serverTls(cell) : {}),
    ...(!tls && protocol === "vless" && cell.encryption === null ? { "allow-insecure": true } : {}),
    ...(cell.encryption === null ? {} : { decryption: cell.encryption.decryption }),
    ...(network === "ws" || network === "httpupgrade" ? { "ws-path": PATH } : {}),
    ...(network === "grpc" ? { "grpc-service-name": SERVICE } : {}),
    ...(network === "h2" ? { "h2-config": { host: [NAME], path: PATH } } : {}),
    ...(network === "xhttp" ? { "xhttp-config": { path: PATH, mode: cell.xhttpMode } } : {}),
    ...(mux === "none" || mux === "cool" ? {} : { "mux-option": { padding: cell.padding } }),
  };
}

function serverTls({ reality, ech }: Cell): object {
  if (reality !== null) return clashRealityServer(reality);
  const keys = { certificate: certificate.cert, "private-key": certificate.key };
  return ech ? { ...keys, "ech-key": echKeys.key } : keys;
}

function clientTls({ reality, ech }: Cell): object {
  if (reality !== null) return clashRealityClient(reality);
  const hidden = ech ? { "ech-opts": { enable: true, config: echKeys.config } } : {};
  return { "skip-cert-verify": true, ...hidden };
}

function obfs({ salamander }: Cell): object {
  return salamander === "" ? {} : { obfs: "salamander", "obfs-password": salamander };
}

function ssServer({ cipher, keys, key }: Cell): object {
  if (keys === null) return { cipher, password: key, udp: true };
  return { cipher, password: keys.server, users: { ann: keys.user }, udp: true };
}

function proxy(cell: Cell, port: number): object {
  const { protocol, network, tls, mux, udp } = cell;
  const credentials = {
    vless: {
      uuid,
      ...(cell.vision ? { flow: VISION } : {}),
      ...(cell.encryption === null ? {} : { encryption: cell.encryption.encryption }),
    },
    vmess: { uuid, alterId: 0, cipher: cell.cipher },
    tuic: { uuid, password, "udp-relay-mode": udp },
    ss: { cipher: cell.cipher, password: cell.key },
    http: { username: "ann", password },
    socks5: { username: "ann", password },
  } as Partial<Record<string, object>>;
  const packets = udp === "native" ? "none" : udp;
  return {
    name: "far",
    type: protocol,
    server: "127.0.0.1",
    port,
    ...(protocol === "http" ? {} : { udp: true }),
    ...(credentials[protocol] ?? { password }),
    ...(tls ? { tls: true, servername: NAME, sni: NAME, ...clientTls(cell) } : {}),
    ...(protocol === "vless" || protocol === "vmess" ? { "packet-encoding": packets } : {}),
    ...(protocol === "ss" && udp === "uot" ? { "udp-over-tcp": true, "udp-over-tcp-version": 2 } : {}),
    ...obfs(cell),
    ...backend(cell, network),
    ...(cell.alpn === null ? {} : { alpn: cell.alpn }),
    ...(mux === "none"
      ? {}
      : { smux: { enabled: true, protocol: MUXES[mux], padding: cell.padding, "max-connections": 4 } }),
    ...pluginOf(cell),
  };
}

function backend(cell: Cell, network: Cell["network"]): object {
  const ws = { path: PATH, headers: { Host: NAME } };
  const blocks = {
    tcp: {},
    ws: { network: "ws", "ws-opts": ws },
    httpupgrade: { network: "ws", "ws-opts": { ...ws, "v2ray-http-upgrade": true } },
    grpc: { network: "grpc", "grpc-opts": { "grpc-service-name": SERVICE } },
    h2: { network: "h2", "h2-opts": { host: [NAME], path: PATH } },
    xhttp: { network: "xhttp", "xhttp-opts": { path: PATH, host: NAME, mode: cell.xhttpMode } },
  };
  return blocks[network];
}

/** mihomo's servers do not know packetaddr, and its vless client wraps every packet twice. */
const mihomoCan = (cell: Cell): boolean =>
  cell.mux !== "cool" &&
  cell.udp !== "packetaddr" &&
  cell.network !== "xhttp" &&
  cell.plugin === "none" &&
  cell.reality?.mldsa65 !== true;

export const weir = (program: string, clientKeys: object = {}): Speaker =>
  speaker({
    program,
    clientKeys,
    version: ["-v"],
    command: (file) => [program, "-d", "{}/", "-f", file],
    serves: ({ plugin, alpn }) => plugin === "none" && alpn?.[0] !== "h3",
    dials: () => true,
  });

export const mihomo: Speaker = speaker({
  program: "mihomo",
  version: ["-v"],
  command: (file) => ["mihomo", "-d", "{}/", "-f", file],
  serves: (cell) =>
    mihomoCan(cell) &&
    cell.keys === null &&
    cell.network !== "h2" &&
    (cell.tls || cell.protocol !== "vless" || cell.encryption !== null),
  dials: mihomoCan,
});
