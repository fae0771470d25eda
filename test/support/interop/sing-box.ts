import { type Cell, certificate, NAME, password, PATH, SERVICE, uuid, VISION } from "./cells.ts";
import { ech, echConfigPem } from "./encryption.ts";
import { singBoxReality } from "./reality.ts";
import { type Launch, lines, type Speaker } from "./speaker.ts";

const launch = (config: object): Launch => ({
  command: ["sing-box", "run", "-D", "{}/", "-c", "{}/config.json"],
  files: { "config.json": JSON.stringify({ log: { level: "warn", timestamp: false }, ...config }) },
});

const knows = ({ network, mux, plugin, reality, encryption }: Cell): boolean =>
  encryption === null &&
  network !== "xhttp" &&
  mux !== "cool" &&
  plugin === "none" &&
  reality?.mldsa65 !== true;

export const singBox: Speaker = {
  program: "sing-box",
  version: ["version"],
  server(cell, port) {
    if (!knows(cell) || cell.protocol === "socks5") return null; // its SOCKS has no TLS
    return launch({ inbounds: [inbound(cell, port)], outbounds: [{ type: "direct" }] });
  },
  client(cell, socksPort, port) {
    if (!knows(cell) || cell.protocol === "socks5") return null;
    if (cell.reality?.group === "X25519MLKEM768") return null; // its hellos in REALITY offer X25519 alone, whatever the browser
    const socks = { type: "socks", listen: "127.0.0.1", listen_port: socksPort };
    return launch({ inbounds: [socks], outbounds: [outbound(cell, port)] });
  },
};

const TYPES = { ss: "shadowsocks" } as Partial<Record<string, string>>;

function inbound(cell: Cell, port: number): object {
  const { protocol, tls, mux } = cell;
  const named = { name: "ann", password };
  const users = {
    vless: [{ name: "ann", uuid, ...(cell.vision ? { flow: VISION } : {}) }],
    vmess: [{ name: "ann", uuid, alterId: 0 }],
    trojan: [named],
    anytls: [named],
    hysteria2: [named],
    tuic: [{ name: "ann", uuid, password }],
    http: [{ username: "ann", password }],
  } as Partial<Record<string, unknown>>;
  const keys =
    cell.keys === null
      ? { method: cell.cipher, password: cell.key }
      : {
          method: cell.cipher,
          password: cell.keys.server,
          users: [{ name: "ann", password: cell.keys.user }],
        };
  return {
    type: TYPES[protocol] ?? protocol,
    listen: "127.0.0.1",
    listen_port: port,
    ...(protocol === "ss" ? keys : { users: users[protocol] }),
    ...(tls ? { tls: serverTls(cell) } : {}),
    ...obfs(cell),
    ...transport(cell),
    ...(mux === "none" ? {} : { multiplex: { enabled: true, padding: cell.padding } }),
  };
}

function outbound(cell: Cell, port: number): object {
  const { protocol, tls, mux, udp } = cell;
  const credentials = {
    vless: { uuid, ...(cell.vision ? { flow: VISION } : {}) },
    vmess: { uuid, security: cell.cipher },
    tuic: { uuid, password, udp_relay_mode: udp },
    ss: { method: cell.cipher, password: cell.key },
    http: { username: "ann", password },
  } as Partial<Record<string, object>>;
  const packets = udp === "xudp" || udp === "packetaddr" ? udp : "";
  return {
    type: TYPES[protocol] ?? protocol,
    server: "127.0.0.1",
    server_port: port,
    ...(credentials[protocol] ?? { password }),
    ...(tls ? { tls: clientTls(cell) } : {}),
    ...(protocol === "vless" || protocol === "vmess" ? { packet_encoding: packets } : {}),
    ...(protocol === "ss" && udp === "uot" ? { udp_over_tcp: { enabled: true, version: 2 } } : {}),
    ...obfs(cell),
    ...transport(cell),
    ...(mux === "none"
      ? {}
      : { multiplex: { enabled: true, protocol: mux, padding: cell.padding, max_connections: 4 } }),
  };
}

function serverTls({ reality, protocol, ech: isHidden }: Cell): object {
  if (reality !== null) return singBoxReality(reality, "server");
  return {
    enabled: true,
    certificate: lines(certificate.cert),
    key: lines(certificate.key),
    ...(isHidden ? { ech: { enabled: true, key: lines(ech.key) } } : {}),
    ...alpnOf(protocol),
  };
}

function clientTls({ reality, protocol, ech: isHidden }: Cell): object {
  if (reality !== null) return singBoxReality(reality, "client");
  const hidden = isHidden ? { ech: { enabled: true, config: echConfigPem } } : {};
  return { enabled: true, server_name: NAME, insecure: true, ...alpnOf(protocol), ...hidden };
}

function alpnOf(protocol: string): object {
  return protocol === "tuic" ? { alpn: ["h3"] } : {};
}

function obfs({ salamander }: Cell): object {
  return salamander === "" ? {} : { obfs: { type: "salamander", password: salamander } };
}

function transport({ network }: Cell): object {
  const kinds = {
    tcp: null,
    xhttp: null,
    ws: { type: "ws", path: PATH },
    httpupgrade: { type: "httpupgrade", path: PATH, host: NAME },
    grpc: { type: "grpc", service_name: SERVICE },
    h2: { type: "http", host: [NAME], path: PATH, method: "PUT" },
  };
  return kinds[network] === null ? {} : { transport: kinds[network] };
}
