/** Outbounds of Xray (infra/conf/xray.go) as nodes, and its balancers as groups. */
import type { Protocol } from "#core/protocol.ts";
import type { LinkNode } from "#core/share-link.ts";
import { shown, type LeftOut } from "./imported.ts";
import { countOf, objectOf, objectsOf, textOf, textsOf, type Json } from "./json.ts";
import { REFUSED, Ways } from "./ways.ts";
import { wireGuardOf } from "./xray-wireguard.ts";

/** Outbounds that need no node. */
const TARGETS: Readonly<Record<string, string>> = { freedom: "DIRECT", blackhole: REFUSED };

/** `where`: in front of places; ends with a dot or is empty. */
export function readWays(
  xray: Json,
  where: string,
  { protocols, report }: { readonly protocols: readonly Protocol[]; readonly report: LeftOut },
): Ways {
  const ways = new Ways(report);
  const chained: [node: LinkNode, tag: string][] = [];
  for (const [at, outbound] of objectsOf(xray["outbounds"])) {
    const place = `${where}outbounds[${at}]`;
    const protocol = textOf(outbound["protocol"]);
    const tag = textOf(outbound["tag"]);
    const fields = TARGETS[protocol] === undefined ? nodeOf(outbound, protocol, protocols) : null;
    if (fields === null || typeof fields === "string") {
      ways.lead(tag, TARGETS[protocol] ?? REFUSED);
      if (fields !== null)
        report.add(place, `${shown(protocol)} is not taken (${fields}); what would leave by it is refused`);
      continue;
    }
    const node: LinkNode = { name: ways.claim(tag, `node-${at}`, place), ...fields };
    if (objectOf(outbound["mux"])["enabled"] === true)
      report.add(`${place}.mux`, "is not taken; each connection is one of its own");
    const stream = objectOf(outbound["streamSettings"]);
    const through =
      textOf(objectOf(outbound["proxySettings"])["tag"]) ||
      textOf(objectOf(stream["sockopt"])["dialerProxy"]);
    if (through !== "") chained.push([node, through]);
    ways.add(node);
  }
  for (const [node, tag] of chained) {
    node["dialer-proxy"] = ways.target(tag) ?? REFUSED;
    if (node["dialer-proxy"] === "DIRECT") delete node["dialer-proxy"];
  }
  readBalancers(xray, where, { ways, report });
  return ways;
}

/** Why there is no such node, or the node without its name. */
function nodeOf(outbound: Json, protocol: string, protocols: readonly Protocol[]): LinkNode | string {
  const settings = objectOf(outbound["settings"]);
  if (protocol === "wireguard") return wireGuardOf(settings);
  const [, server] = objectsOf(settings["vnext"] ?? settings["servers"])[0] ?? [0, settings];
  const [, user] = objectsOf(server["users"])[0] ?? [0, server];
  const read = Object.hasOwn(NODES, protocol) ? NODES[protocol] : undefined;
  const { type = protocol, fields = plain } = read ?? {};
  const shape = protocols.find((one) => one.type === type)?.outbound?.schema.shape;
  if (shape === undefined || (read === undefined && !("uuid" in shape))) return "there is no such node";
  const host = textOf(server["address"]);
  const port = countOf(server["port"]);
  if (host === "" || port === 0) return "it has no server";
  const stream = streamOf(objectOf(outbound["streamSettings"]), shape);
  if (typeof stream === "string") return stream;
  return { type, server: host, port, ...fields(user, server), ...stream };
}

/** Keys of a node. */
type Shape = Readonly<Record<string, unknown>>;

interface NodeReader {
  readonly type: string;
  fields(user: Json, server: Json): LinkNode;
}

const account = (user: Json): LinkNode => {
  const username = textOf(user["user"]);
  return username === "" ? {} : { username, password: textOf(user["pass"]) };
};

/** Of those that have a UUID and what Xray has added to it. */
const plain = (user: Json): LinkNode => {
  const [flow, encryption] = [textOf(user["flow"]), textOf(user["encryption"])];
  return {
    uuid: textOf(user["id"]),
    udp: true,
    ...(flow === "" ? {} : { flow: flow.replace(/-udp443$/, "") }),
    ...(encryption === "" || encryption === "none" ? {} : { encryption }),
  };
};

const NODES: Readonly<Record<string, NodeReader>> = {
  vmess: {
    type: "vmess",
    fields: (user) => ({
      uuid: textOf(user["id"]),
      alterId: countOf(user["alterId"]),
      cipher: textOf(user["security"]) || "auto",
      udp: true,
    }),
  },
  trojan: { type: "trojan", fields: (user) => ({ password: textOf(user["password"]), udp: true }) },
  shadowsocks: {
    type: "ss",
    fields: (_user, server) => ({
      cipher: textOf(server["method"]),
      password: textOf(server["password"]),
      udp: true,
      ...(server["uot"] === true ? { "udp-over-tcp": true } : {}),
    }),
  },
  socks: { type: "socks5", fields: (user) => ({ ...account(user), udp: true }) },
  http: { type: "http", fields: account },
};

/** Why nothing of ours carries it, or the keys. */
function streamOf(stream: Json, shape: Shape): LinkNode | string {
  const network = textOf(stream["network"]).toLowerCase() || "tcp";
  const read = Object.hasOwn(NETWORKS, network) ? NETWORKS[network] : undefined;
  if (read === undefined) return `no node has the transport ${shown(network)}`;
  const member = read.members.find((name) => name in stream) ?? "";
  const carrier = objectOf(stream[member]);
  const header = textOf(objectOf(carrier["header"])["type"]);
  if (header !== "" && header !== "none") return `the disguise ${shown(header)} is not spoken`;
  const security = textOf(stream["security"]).toLowerCase();
  const isKnown = ["", "none", "tls", "reality"].includes(security);
  if (!isKnown) return `the security ${shown(security)} is not spoken`;
  return { ...read.keys(carrier), ...securityKeys(stream, security, shape) };
}

const webSocket = (settings: Json, more: Json = {}): LinkNode => {
  const host = textOf(settings["host"]) || textOf(objectOf(settings["headers"])["Host"]);
  const headers = host === "" ? {} : { headers: { Host: host } };
  return { network: "ws", "ws-opts": { path: textOf(settings["path"]) || "/", ...headers, ...more } };
};
const xhttp = {
  members: ["xhttpSettings", "splithttpSettings"],
  keys(settings: Json): LinkNode {
    const { path, host, mode } = settings;
    const named = { path: textOf(path) || "/", host: textOf(host), mode: textOf(mode) };
    return {
      network: "xhttp",
      "xhttp-opts": Object.fromEntries(Object.entries(named).filter(([, value]) => value !== "")),
    };
  },
};
const bare = { members: ["tcpSettings", "rawSettings"], keys: (): LinkNode => ({}) };

const NETWORKS: Readonly<
  Record<string, { readonly members: readonly string[]; keys(settings: Json): LinkNode }>
> = {
  tcp: bare,
  raw: bare,
  ws: { members: ["wsSettings"], keys: webSocket },
  websocket: { members: ["wsSettings"], keys: webSocket },
  httpupgrade: {
    members: ["httpupgradeSettings"],
    keys: (settings) => webSocket(settings, { "v2ray-http-upgrade": true }),
  },
  grpc: {
    members: ["grpcSettings"],
    keys: (settings) => ({
      network: "grpc",
      "grpc-opts": { "grpc-service-name": textOf(settings["serviceName"]) || "GunService" },
    }),
  },
  xhttp,
  splithttp: xhttp,
};

function securityKeys(stream: Json, security: string, shape: Shape): LinkNode {
  if (security === "" || security === "none") return {};
  const isReality = security === "reality";
  const tls = objectOf(stream[isReality ? "realitySettings" : "tlsSettings"]);
  const name = textOf(tls["serverName"]);
  const print = textOf(tls["fingerprint"]);
  const alpn = textsOf(tls["alpn"]);
  return {
    ...("tls" in shape ? { tls: true } : {}),
    ...(name === "" ? {} : { ["servername" in shape ? "servername" : "sni"]: name }),
    ...(print === "" ? {} : { "client-fingerprint": print }),
    ...(alpn.length === 0 ? {} : { alpn }),
    ...(tls["allowInsecure"] === true ? { "skip-cert-verify": true } : {}),
    ...(isReality ? { "reality-opts": realityKeys(tls) } : {}),
  };
}

function realityKeys(reality: Json): LinkNode {
  const signature = textOf(reality["mldsa65Verify"]);
  return {
    "public-key": textOf(reality["publicKey"]) || textOf(reality["password"]),
    "short-id": textOf(reality["shortId"]),
    ...(signature === "" ? {} : { "mldsa65-verify": signature }),
  };
}

const PROBE_URL = "https://www.gstatic.com/generate_204";

/** A balancer picks among outbounds whose tags begin with one of its texts. */
function readBalancers(
  xray: Json,
  where: string,
  { ways, report }: { readonly ways: Ways; readonly report: LeftOut },
): void {
  const tags = objectsOf(xray["outbounds"]).map(([, outbound]) => textOf(outbound["tag"]));
  for (const [at, balancer] of objectsOf(objectOf(xray["routing"])["balancers"])) {
    const place = `${where}routing.balancers[${at}]`;
    const prefixes = textsOf(balancer["selector"]).filter((prefix) => prefix !== "");
    const members = ways.members(tags.filter((tag) => prefixes.some((prefix) => tag.startsWith(prefix))));
    if (members.length === 0) {
      report.add(place, "none of its outbounds is taken; what would leave by it is refused");
      continue;
    }
    const strategy = textOf(objectOf(balancer["strategy"])["type"]).toLowerCase();
    const measures = strategy === "leastping" || strategy === "leastload";
    if (strategy === "leastload") report.add(place, "it picks by the delay alone");
    const kind = measures
      ? { type: "url-test", url: PROBE_URL, interval: 300 }
      : { type: "load-balance", strategy: "round-robin", url: PROBE_URL, interval: 300 };
    const name = ways.claim(balancerTag(textOf(balancer["tag"])), `balancer-${at}`, place);
    ways.addGroup({ name, ...kind, proxies: members });
  }
}

/** Balancers and outbounds are told apart there, so both may have one tag. */
export function balancerTag(tag: string): string {
  return tag === "" ? "" : `balancer ${tag}`;
}
