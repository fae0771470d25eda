/** Xray, and the v2ray that it comes from. */
import { type Cell, certificate, NAME, password, PATH, SERVICE, uuid, VISION } from "./cells.ts";
import { ech, echServerKeys } from "./encryption.ts";
import { rayReality } from "./reality.ts";
import { type Launch, lines, type Speaker } from "./speaker.ts";

interface Dialect {
  readonly program: string;
  readonly version: readonly string[];
  readonly command: readonly string[];
  knows(cell: Cell): boolean;
  serves(cell: Cell): boolean;
  /** How a client trusts the certificate. */
  readonly trust: object;
  /** Of `freedom`: private addresses are allowed. */
  readonly direct: object;
}

function speaker(dialect: Dialect): Speaker {
  const launch = (config: object): Launch => ({
    command: dialect.command,
    files: { "config.json": JSON.stringify({ log: { loglevel: "warning" }, ...config }) },
  });
  return {
    program: dialect.program,
    version: dialect.version,
    server(cell, port) {
      if (!dialect.knows(cell) || !dialect.serves(cell)) return null;
      return launch({
        inbounds: [
          {
            listen: "127.0.0.1",
            port,
            ...serving(cell),
            streamSettings: stream(cell, { ...serverTls(cell), ...alpnOf(cell) }, "server"),
          },
        ],
        outbounds: [{ protocol: "freedom", settings: dialect.direct }],
      });
    },
    client(cell, socksPort, port) {
      if (!dialect.knows(cell)) return null;
      const door = { listen: "127.0.0.1", port: socksPort, protocol: "socks", settings: { udp: true } };
      const hidden = cell.ech ? { echConfigList: ech.config } : {};
      const tls = { serverName: NAME, ...dialect.trust, ...alpnOf(cell), ...hidden };
      return launch({
        inbounds: [door],
        outbounds: [
          {
            ...dialling(cell, port),
            streamSettings: stream(cell, tls, "client"),
            ...(cell.mux === "cool" ? { mux: { enabled: true, concurrency: 8 } } : {}),
          },
        ],
      });
    },
  };
}

const alpnOf = ({ alpn }: Cell): object => (alpn === null ? {} : { alpn });

const serverTls = (cell: Cell): object => ({
  certificates: [{ certificate: lines(certificate.cert), key: lines(certificate.key) }],
  ...(cell.ech ? { echServerKeys } : {}),
});
const TYPES = { ss: "shadowsocks", socks5: "socks", hysteria2: "hysteria" } as Partial<
  Record<string, string>
>;

function serving(cell: Cell): object {
  const { protocol, keys } = cell;
  const account = { user: "ann", pass: password };
  const settings = {
    vless: {
      clients: [{ id: uuid, ...(cell.vision ? { flow: VISION } : {}) }],
      decryption: cell.encryption?.decryption ?? "none",
    },
    vmess: { clients: [{ id: uuid }] },
    trojan: { clients: [{ password }] },
    ss:
      keys === null
        ? { method: cell.cipher, password: cell.key, network: "tcp,udp" }
        : {
            method: cell.cipher,
            password: keys.server,
            clients: [{ password: keys.user, email: "ann" }],
            network: "tcp,udp",
          },
    hysteria2: { version: 2, clients: [{ auth: password, email: "ann" }] },
    http: { accounts: [account] },
    socks5: { auth: "password", accounts: [account], udp: true },
  } as Partial<Record<string, object>>;
  return { protocol: TYPES[protocol] ?? protocol, settings: settings[protocol] };
}

function dialling(cell: Cell, port: number): object {
  const { protocol } = cell;
  const address = "127.0.0.1";
  const encryption = cell.encryption?.encryption ?? "none";
  const user = { id: uuid, encryption, ...(cell.vision ? { flow: VISION } : {}) };
  const account = { user: "ann", pass: password };
  const settings = {
    vless: { vnext: [{ address, port, users: [user] }] },
    vmess: { vnext: [{ address, port, users: [{ id: uuid, security: cell.cipher }] }] },
    trojan: { servers: [{ address, port, password }] },
    ss: { servers: [{ address, port, method: cell.cipher, password: cell.key }] },
    hysteria2: { version: 2, address, port },
    http: { servers: [{ address, port, users: [account] }] },
    socks5: { servers: [{ address, port, users: [account] }] },
  } as Partial<Record<string, object>>;
  return { protocol: TYPES[protocol] ?? protocol, settings: settings[protocol] };
}

function stream(cell: Cell, tlsSettings: object, side: "server" | "client"): object {
  if (cell.protocol === "hysteria2") return overQuic(cell, tlsSettings);
  const networks = {
    tcp: {},
    ws: { wsSettings: { path: PATH, host: NAME } },
    httpupgrade: { httpupgradeSettings: { path: PATH, host: NAME } },
    grpc: { grpcSettings: { serviceName: SERVICE } },
    h2: { httpSettings: { path: PATH, host: [NAME] } },
    xhttp: { xhttpSettings: { path: PATH, host: NAME, mode: cell.xhttpMode } },
  };
  const network = cell.network === "h2" ? "http" : cell.network;
  const tls = cell.tls ? { security: "tls", tlsSettings } : {};
  const security = cell.reality === null ? tls : rayReality(cell.reality, side);
  return { network, ...networks[cell.network], ...security };
}

function overQuic({ salamander }: Cell, tlsSettings: object): object {
  const mask = { type: "salamander", settings: { password: salamander } };
  return {
    network: "hysteria",
    security: "tls",
    tlsSettings: { ...tlsSettings, alpn: ["h3"] },
    hysteriaSettings: { version: 2, auth: password },
    ...(salamander === "" ? {} : { finalmask: { udp: [mask] } }),
  };
}

const SPOKEN: readonly string[] = ["vless", "vmess", "trojan", "ss", "http", "socks5", "hysteria2"];
const anywhere = ({ protocol, mux, udp, plugin }: Cell): boolean =>
  plugin === "none" &&
  SPOKEN.includes(protocol) &&
  (mux === "none" || mux === "cool") &&
  udp !== "uot" &&
  udp !== "packetaddr";

export const xray: Speaker = speaker({
  program: "xray",
  version: ["version"],
  command: ["xray", "run", "-c", "{}/config.json"],
  // HTTP/2 as such has gone into xhttp, and its VMess server no longer takes "none" and "zero".
  knows: (cell) => anywhere(cell) && cell.network !== "h2",
  serves: ({ cipher }) => cipher !== "none" && cipher !== "zero",
  trust: { pinnedPeerCertSha256: certificate.fingerprint },
  direct: { finalRules: [{ action: "allow" }] },
});

export const v2ray: Speaker = speaker({
  program: "v2ray",
  version: ["-version"],
  command: ["v2ray", "-config", "{}/config.json"],
  knows: (cell) =>
    anywhere(cell) &&
    cell.protocol !== "hysteria2" &&
    !cell.vision &&
    !cell.ech &&
    cell.encryption === null &&
    cell.udp !== "xudp" &&
    cell.keys === null &&
    cell.reality === null &&
    !cell.cipher.startsWith("2022") &&
    ["tcp", "ws", "h2"].includes(cell.network),
  serves: () => true,
  trust: { allowInsecure: true },
  direct: {},
});
