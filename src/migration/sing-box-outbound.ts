/** Outbounds of sing-box (option/outbound.go and the protocols beside it) as nodes and groups. */
import type { Protocol } from "#core/protocol.ts";
import type { LinkNode } from "#core/share-link.ts";
import { shown, type LeftOut } from "./imported.ts";
import { countOf, objectOf, objectsOf, textOf, textsOf, type Json } from "./json.ts";
import { REFUSED, Ways } from "./ways.ts";

const TARGETS: Readonly<Record<string, string>> = { direct: "DIRECT", block: REFUSED, dns: REFUSED };
const GROUPS: ReadonlySet<string> = new Set(["selector", "urltest"]);

export function readWays(box: Json, protocols: readonly Protocol[], report: LeftOut): Ways {
  const ways = new Ways(report);
  const chained: [node: LinkNode, tag: string][] = [];
  const groups: [place: string, name: string, outbound: Json][] = [];
  for (const [at, outbound] of objectsOf(box["outbounds"])) {
    const place = `outbounds[${at}]`;
    const [type, tag] = [textOf(outbound["type"]), textOf(outbound["tag"])];
    if (GROUPS.has(type)) {
      if (hasMembers(box, outbound, protocols))
        groups.push([place, ways.claim(tag, `group-${at}`, place), outbound]);
      else refuse(ways, tag, `${place}: none of its outbounds is taken`, report);
      continue;
    }
    if (TARGETS[type] !== undefined) {
      ways.lead(tag, TARGETS[type]);
      continue;
    }
    const fields = nodeOf(outbound, type, protocols);
    if (typeof fields === "string") {
      refuse(ways, tag, `${place}: ${shown(type)} is not taken (${fields})`, report);
      continue;
    }
    const node: LinkNode = { name: ways.claim(tag, `node-${at}`, place), ...fields };
    const detour = textOf(outbound["detour"]);
    if (detour !== "") chained.push([node, detour]);
    if (objectOf(outbound["multiplex"])["enabled"] === true)
      node["smux"] = smuxOf(objectOf(outbound["multiplex"]));
    ways.add(node);
  }
  for (const [at, endpoint] of objectsOf(box["endpoints"]))
    refuse(
      ways,
      textOf(endpoint["tag"]),
      `endpoints[${at}]: ${shown(textOf(endpoint["type"]))} is not taken`,
      report,
    );
  for (const [node, tag] of chained)
    if (ways.target(tag) !== "DIRECT") node["dialer-proxy"] = ways.target(tag) ?? REFUSED;
  for (const [place, name, outbound] of groups)
    ways.addGroup(groupOf(name, outbound, { place, ways, report }));
  return ways;
}

function refuse(ways: Ways, tag: string, why: string, report: LeftOut): void {
  const [where = "", ...words] = why.split(": ");
  ways.lead(tag, REFUSED);
  report.add(where, `${words.join(": ")}; what would leave by it is refused`);
}

/** Whether one of its members, or of theirs, is taken; a circle has none. */
function hasMembers(
  box: Json,
  group: Json,
  protocols: readonly Protocol[],
  seen: ReadonlySet<string> = new Set(),
): boolean {
  const tag = textOf(group["tag"]);
  if (seen.has(tag)) return false;
  const inner = new Set([...seen, tag]);
  const members = new Set(textsOf(group["outbounds"]));
  return objectsOf(box["outbounds"]).some(([, one]) => {
    if (!members.has(textOf(one["tag"]))) return false;
    const type = textOf(one["type"]);
    if (GROUPS.has(type)) return hasMembers(box, one, protocols, inner);
    return (
      TARGETS[type] === "DIRECT" ||
      (TARGETS[type] === undefined && typeof nodeOf(one, type, protocols) !== "string")
    );
  });
}

const PROBE_URL = "https://www.gstatic.com/generate_204";
const PROBE_SECONDS = 180;

function groupOf(
  name: string,
  outbound: Json,
  { place, ways, report }: { readonly place: string; readonly ways: Ways; readonly report: LeftOut },
): Json {
  const tags = textsOf(outbound["outbounds"]);
  const members = ways.members(tags);
  if (members.length < tags.length)
    report.add(`${place}.outbounds`, `${tags.length - members.length} of them are not taken`);
  if (textOf(outbound["type"]) === "urltest")
    return {
      name,
      type: "url-test",
      proxies: members,
      url: textOf(outbound["url"]) || PROBE_URL,
      interval: secondsOf(textOf(outbound["interval"])) || PROBE_SECONDS,
      ...(countOf(outbound["tolerance"]) > 0 ? { tolerance: countOf(outbound["tolerance"]) } : {}),
    };
  const first = ways.target(textOf(outbound["default"]));
  const isFirst = first !== undefined && members.includes(first); // what is chosen at first
  const ordered = isFirst ? [first, ...members.filter((one) => one !== first)] : members;
  return { name, type: "select", proxies: ordered };
}

const UNITS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 };

/** `3m`, `1h30m`; 0: it is none. */
export function secondsOf(text: string): number {
  let seconds = 0;
  for (const [, count = "0", unit = "s"] of text.matchAll(/(\d{1,9}(?:\.\d{1,9})?)(ms|[smhd])/g))
    seconds += Number(count) * (UNITS[unit] ?? 1);
  return Math.round(seconds);
}

function smuxOf(multiplex: Json): Json {
  const named = {
    protocol: textOf(multiplex["protocol"]) || "h2mux",
    "max-connections": countOf(multiplex["max_connections"]),
    "min-streams": countOf(multiplex["min_streams"]),
    "max-streams": countOf(multiplex["max_streams"]),
    padding: multiplex["padding"] === true,
  };
  return { enabled: true, ...named };
}

interface NodeReader {
  readonly type: string;
  fields(outbound: Json): LinkNode;
}

const password = (outbound: Json): LinkNode => ({ password: textOf(outbound["password"]) });
const account = (outbound: Json): LinkNode =>
  textOf(outbound["username"]) === ""
    ? {}
    : { username: textOf(outbound["username"]), ...password(outbound) };
const udp = (outbound: Json): LinkNode => ({ udp: textOf(outbound["network"]) !== "tcp" });

/** Members of those that are called here as they are there. */
const PLAIN = [
  ["uuid", "uuid"],
  ["password", "password"],
  ["flow", "flow"],
  ["packet_encoding", "packet-encoding"],
] as const;

const plain = (outbound: Json): LinkNode => ({
  ...Object.fromEntries(
    PLAIN.flatMap(([there, here]) =>
      textOf(outbound[there]) === "" ? [] : [[here, textOf(outbound[there])]],
    ),
  ),
  ...udp(outbound),
});

const NODES: Readonly<Record<string, NodeReader>> = {
  vmess: {
    type: "vmess",
    fields: (outbound) => ({
      uuid: textOf(outbound["uuid"]),
      alterId: countOf(outbound["alter_id"]),
      cipher: textOf(outbound["security"]) || "auto",
      ...udp(outbound),
    }),
  },
  trojan: { type: "trojan", fields: (outbound) => ({ ...password(outbound), ...udp(outbound) }) },
  shadowsocks: {
    type: "ss",
    fields: (outbound) => ({
      cipher: textOf(outbound["method"]),
      ...password(outbound),
      ...udp(outbound),
      ...(outbound["udp_over_tcp"] === true || objectOf(outbound["udp_over_tcp"])["enabled"] === true
        ? { "udp-over-tcp": true }
        : {}),
    }),
  },
  socks: { type: "socks5", fields: (outbound) => ({ ...account(outbound), udp: true }) },
  http: { type: "http", fields: account },
  hysteria2: {
    type: "hysteria2",
    fields(outbound) {
      const obfs = objectOf(outbound["obfs"]);
      const ports = textsOf(outbound["server_ports"]).map((range) => range.replace(":", "-"));
      const [up, down] = [countOf(outbound["up_mbps"]), countOf(outbound["down_mbps"])];
      return {
        ...password(outbound),
        ...(ports.length === 0 ? {} : { ports: ports.join(",") }),
        ...(textOf(obfs["type"]) === ""
          ? {}
          : { obfs: textOf(obfs["type"]), "obfs-password": textOf(obfs["password"]) }),
        ...(up === 0 ? {} : { up: `${up} Mbps` }),
        ...(down === 0 ? {} : { down: `${down} Mbps` }),
      };
    },
  },
  tuic: {
    type: "tuic",
    fields(outbound) {
      const [controller, mode] = [textOf(outbound["congestion_control"]), textOf(outbound["udp_relay_mode"])];
      return {
        uuid: textOf(outbound["uuid"]),
        ...password(outbound),
        ...(controller === "" ? {} : { "congestion-controller": controller }),
        ...(mode === "" ? {} : { "udp-relay-mode": mode }),
      };
    },
  },
};

/** Why there is no such node, or the node without its name. */
function nodeOf(outbound: Json, type: string, protocols: readonly Protocol[]): LinkNode | string {
  const read = Object.hasOwn(NODES, type) ? NODES[type] : undefined;
  const { type: spoken = type, fields = plain } = read ?? {};
  const shape = protocols.find((one) => one.type === spoken)?.outbound?.schema.shape;
  if (shape === undefined) return "there is no such node";
  const server = textOf(outbound["server"]);
  const port = countOf(outbound["server_port"]);
  const hops = textsOf(outbound["server_ports"]);
  if (server === "" || (port === 0 && hops.length === 0)) return "it has no server";
  if (textOf(outbound["plugin"]) !== "") return `the plugin ${shown(textOf(outbound["plugin"]))}`;
  const carrier = carrierKeys(objectOf(outbound["transport"]));
  if (carrier === null) return "its transport";
  const device = textOf(outbound["bind_interface"]);
  return {
    type: spoken,
    server,
    port: port || Number(/\d+/.exec(hops[0] ?? "")?.[0] ?? 0),
    ...fields(outbound),
    ...carrier,
    ...tlsKeys(objectOf(outbound["tls"]), shape),
    ...(device === "" ? {} : { "interface-name": device }),
  };
}

function carrierKeys(transport: Json): LinkNode | null {
  const type = textOf(transport["type"]);
  const path = textOf(transport["path"]) || "/";
  const [host = ""] = textsOf(transport["host"]);
  if (type === "") return {};
  if (type === "grpc")
    return { network: "grpc", "grpc-opts": { "grpc-service-name": textOf(transport["service_name"]) } };
  if (type === "http")
    return {
      network: "h2",
      "h2-opts": { path, ...(host === "" ? {} : { host: textsOf(transport["host"]) }) },
    };
  if (type !== "ws" && type !== "httpupgrade") return null;
  const [named = ""] = textsOf(objectOf(transport["headers"])["Host"]);
  const sent = host || named;
  const early = countOf(transport["max_early_data"]);
  return {
    network: "ws",
    "ws-opts": {
      path,
      ...(sent === "" ? {} : { headers: { Host: sent } }),
      ...(type === "httpupgrade" ? { "v2ray-http-upgrade": true } : {}),
      ...(early === 0
        ? {}
        : { "max-early-data": early, "early-data-header-name": textOf(transport["early_data_header_name"]) }),
    },
  };
}

/** Where there is no choice, nodes have no `tls`. */
function tlsKeys(tls: Json, shape: Readonly<Record<string, unknown>>): LinkNode {
  if (tls["enabled"] !== true) return {};
  const sni = "servername" in shape ? "servername" : "sni";
  const name = textOf(tls["server_name"]);
  const alpn = textsOf(tls["alpn"]);
  const print = objectOf(tls["utls"]);
  const reality = objectOf(tls["reality"]);
  return {
    ...("tls" in shape ? { tls: true } : {}),
    ...(name === "" ? {} : { [sni]: name }),
    ...(alpn.length === 0 ? {} : { alpn }),
    ...(tls["insecure"] === true ? { "skip-cert-verify": true } : {}),
    ...(print["enabled"] === true ? { "client-fingerprint": textOf(print["fingerprint"]) || "chrome" } : {}),
    ...(reality["enabled"] === true
      ? {
          "reality-opts": {
            "public-key": textOf(reality["public_key"]),
            "short-id": textOf(reality["short_id"]),
          },
        }
      : {}),
  };
}
