/** How each scheme is read and written (share-link sheet §3). Every node gets `udp: true`, as other clients have it. */
import { ConfigError } from "#core/errors.ts";
import { decode, decodeBase64, isTrue, joinLink, needPort, type Link, type LinkNode } from "./grammar.ts";
import { securityFields, streamQuery, textOf, transportFields } from "./stream.ts";

export interface Scheme {
  /** The first one is written. */
  readonly schemes: readonly string[];
  /** `type` of the nodes. */
  readonly type: string;
  /** Throws `ConfigError`. */
  read(link: Link): LinkNode;
  /** `node` has been read by the protocol's schema or comes from `read`. */
  write(node: LinkNode): string;
}

const server = (link: Link, type: string, fallbackPort: number | null = null): LinkNode => ({
  name: link.name,
  type,
  server: link.host,
  port: needPort(link, fallbackPort),
  udp: true,
});

const common = (node: LinkNode) => ({
  host: String(node["server"]),
  port: Number(node["port"]),
  name: String(node["name"]),
});

function needUser({ user }: Link): string {
  if (user === "") throw new ConfigError("the link has no credentials");
  return user;
}

export const vless: Scheme = {
  schemes: ["vless"],
  type: "vless",
  read(link) {
    const encryption = link.query.get("encryption") ?? "none";
    const flow = link.query.get("flow")?.toLowerCase();
    const packets = link.query.get("packetencoding");
    return {
      ...server(link, "vless"),
      uuid: needUser(link),
      ...(encryption === "none" ? {} : { encryption }),
      ...(flow === undefined ? {} : { flow }),
      ...(packets === undefined ? {} : { "packet-encoding": packets === "packet" ? "packetaddr" : packets }),
      ...securityFields(link.query, "none", "servername"),
      ...transportFields(link.query),
    };
  },
  write: (node) =>
    joinLink({
      scheme: "vless",
      user: encodeURIComponent(String(node["uuid"])),
      ...common(node),
      query: {
        encryption: textOf(node["encryption"]) || "none",
        flow: textOf(node["flow"]),
        ...streamQuery(node, "servername", node["tls"] === true),
      },
    }),
};

export const trojan: Scheme = {
  schemes: ["trojan"],
  type: "trojan",
  read(link) {
    const { tls: _always, ...security } = securityFields(link.query, "tls", "sni");
    return {
      ...server(link, "trojan", 443),
      password: needUser(link),
      ...security,
      ...transportFields(link.query),
    };
  },
  write: (node) =>
    joinLink({
      scheme: "trojan",
      user: encodeURIComponent(String(node["password"])),
      ...common(node),
      query: streamQuery(node, "sni", true),
    }),
};

export const anytls: Scheme = {
  schemes: ["anytls"],
  type: "anytls",
  read(link) {
    const { tls: _always, ...security } = securityFields(link.query, "tls", "sni");
    return { ...server(link, "anytls", 443), password: needUser(link), ...security };
  },
  write: (node) =>
    joinLink({
      scheme: "anytls",
      user: encodeURIComponent(String(node["password"])),
      ...common(node),
      path: "/",
      query: {
        sni: textOf(node["sni"]),
        insecure: node["skip-cert-verify"] === true ? "1" : undefined,
        hpkp: textOf(node["fingerprint"]),
      },
    }),
};

export const socks: Scheme = {
  schemes: ["socks", "socks5", "socks5h"],
  type: "socks5",
  read: (link) => ({ ...server(link, "socks5"), ...accountOf(link) }),
  write: (node) => joinLink({ scheme: "socks", user: accountText(node), ...common(node), query: {} }),
};

export const http: Scheme = {
  schemes: ["http", "https"],
  type: "http",
  read(link) {
    const { udp: _none, ...node } = server(link, "http");
    const tls =
      link.scheme === "https"
        ? { tls: true, ...(link.query.has("sni") ? { sni: link.query.get("sni") } : {}) }
        : {};
    return { ...node, ...accountOf(link), ...tls };
  },
  write: (node) =>
    joinLink({
      scheme: node["tls"] === true ? "https" : "http",
      user: accountText(node),
      ...common(node),
      query: node["tls"] === true ? { sni: textOf(node["sni"]) } : {},
    }),
};

/** `user:password`, or base64 of that. */
function accountOf({ rawUser, user }: Link): LinkNode {
  if (user === "") return {};
  const pair = user.includes(":") ? rawUser : (decodeBase64(user) ?? user);
  const colon = pair.indexOf(":");
  const plain = user.includes(":") ? decode : (text: string) => text;
  return colon < 0
    ? { username: plain(pair) }
    : { username: plain(pair.slice(0, colon)), password: plain(pair.slice(colon + 1)) };
}

function accountText(node: LinkNode): string {
  const [name, password] = [textOf(node["username"]) ?? "", textOf(node["password"]) ?? ""];
  return name === "" && password === "" ? "" : `${encodeURIComponent(name)}:${encodeURIComponent(password)}`;
}

export const hysteria2: Scheme = {
  schemes: ["hysteria2", "hy2"],
  type: "hysteria2",
  read(link) {
    const { query } = link;
    const ports = query.get("mport") ?? link.ports;
    return {
      ...server(link, "hysteria2", 443),
      password: link.user,
      ...(query.has("obfs")
        ? { obfs: query.get("obfs"), "obfs-password": query.get("obfs-password") ?? "" }
        : {}),
      ...(query.has("sni") ? { sni: query.get("sni") } : {}),
      ...(ports === null ? {} : { ports }),
      ...(isTrue(query.get("insecure")) ? { "skip-cert-verify": true } : {}),
    };
  },
  write: (node) =>
    joinLink({
      scheme: "hysteria2",
      user: encodeURIComponent(textOf(node["password"]) ?? ""),
      ...common(node),
      path: "/",
      query: {
        obfs: textOf(node["obfs"]),
        "obfs-password": textOf(node["obfs-password"]),
        sni: textOf(node["sni"]),
        mport: textOf(node["ports"]),
        insecure: node["skip-cert-verify"] === true ? "1" : undefined,
      },
    }),
};

export const tuic: Scheme = {
  schemes: ["tuic"],
  type: "tuic",
  read(link) {
    const [first = "", ...password] = needUser(link).split(":");
    const { query } = link;
    return {
      ...server(link, "tuic", 443),
      ...(password.length === 0 ? { token: first } : { uuid: first, password: password.join(":") }),
      ...(query.has("sni") ? { sni: query.get("sni") } : {}),
      ...(query.has("alpn") ? { alpn: query.get("alpn")?.split(",") } : {}),
      ...(query.has("congestion_control")
        ? { "congestion-controller": query.get("congestion_control") }
        : {}),
      ...(query.has("udp_relay_mode") ? { "udp-relay-mode": query.get("udp_relay_mode") } : {}),
      ...(isTrue(query.get("allow_insecure")) ? { "skip-cert-verify": true } : {}),
    };
  },
  write: (node) =>
    joinLink({
      scheme: "tuic",
      user: `${textOf(node["uuid"]) ?? ""}:${encodeURIComponent(textOf(node["password"]) ?? "")}`,
      ...common(node),
      query: {
        congestion_control: textOf(node["congestion-controller"]),
        udp_relay_mode: textOf(node["udp-relay-mode"]),
        alpn: Array.isArray(node["alpn"]) ? node["alpn"].join(",") : undefined,
        sni: textOf(node["sni"]),
      },
    }),
};
