/** `vmess://`: base64 of JSON (share-links.md §3.1), or the form of a URL. */
import { ConfigError } from "#core/errors.ts";
import type { Link, LinkForm, LinkNode, ListenerContext } from "#core/share-link.ts";
import { decodeBase64, isTrue, needPort } from "#protocols/shared/links/grammar.ts";
import { clientNodes, usersOf } from "#protocols/shared/links/listener.ts";
import {
  mapOf,
  securityFields,
  streamQuery,
  textOf,
  transportFields,
  fieldsOf,
} from "#protocols/shared/links/stream.ts";

export const links: LinkForm = {
  schemes: ["vmess"],
  read(link) {
    if (link.user === "") return readJson(link);
    const { query } = link;
    return {
      name: link.name,
      type: "vmess",
      server: link.host,
      port: needPort(link),
      uuid: link.user,
      alterId: 0,
      cipher: query.get("encryption") ?? "auto",
      udp: true,
      ...securityFields(query, "none", "servername"),
      ...transportFields(query),
    };
  },
  write(node) {
    const query = streamQuery(node, "servername", node["tls"] === true);
    const json = {
      v: "2",
      ps: String(node["name"]),
      add: String(node["server"]),
      port: String(node["port"]),
      id: String(node["uuid"]),
      aid: textOf(node["alterId"]) ?? "0",
      scy: textOf(node["cipher"]) ?? "auto",
      net: query["type"] ?? "tcp",
      type: query["headerType"] ?? "none",
      host: query["host"] ?? "",
      path: query["path"] ?? query["serviceName"] ?? "",
      tls: query["security"] === "none" ? "" : query["security"],
      sni: query["sni"] ?? "",
      alpn: query["alpn"] ?? "",
      fp: query["fp"] ?? "",
      ech: query["ech"],
    };
    return `vmess://${Buffer.from(JSON.stringify(json)).toString("base64")}`;
  },
};

/** Some write booleans where others write names. */
const SECURITY: ReadonlyMap<string, string> = new Map([
  ["", "none"],
  ["0", "none"],
  ["false", "none"],
  ["1", "tls"],
  ["true", "tls"],
]);

function readJson({ body }: Link): LinkNode {
  const fields = parseFields(decodeBase64(body) ?? "");
  const get = (key: string): string => fields.get(key) ?? "";
  const port = Number(get("port"));
  if (get("add") === "" || get("id") === "" || !(port >= 1 && port <= 65_535))
    throw new ConfigError("the vmess link lacks its server");
  const network = get("net") || "tcp";
  const query = new Map(
    Object.entries({
      type: network,
      headertype: get("type"),
      host: get("host"),
      path: get("path"),
      servicename: get("path"),
      security: SECURITY.get(get("tls").toLowerCase()) ?? get("tls"),
      sni: get("sni"),
      alpn: get("alpn"),
      fp: get("fp"),
      ech: get("ech"),
      pcs: get("pcs"),
      vcn: get("vcn"),
      allowinsecure: isTrue(get("insecure")) ? "1" : "",
    }).filter(([, value]) => value !== ""),
  );
  return {
    name: get("ps") || `${get("add")}:${port}`,
    type: "vmess",
    server: get("add"),
    port,
    uuid: get("id"),
    alterId: Number(get("aid")) || 0,
    cipher: get("scy") || "auto",
    udp: true,
    ...securityFields(query, "none", "servername"),
    ...transportFields(query),
  };
}

/** Numbers, booleans and null are as good as texts. */
function parseFields(text: string): ReadonlyMap<string, string> {
  try {
    const map = mapOf(JSON.parse(text)) ?? {};
    return new Map(
      Object.entries(map)
        .filter(([, value]) => ["string", "number", "boolean"].includes(typeof value))
        .map(([key, value]) => [key.toLowerCase(), String(value)]),
    );
  } catch (error) {
    throw new ConfigError("the vmess link holds no JSON", { cause: error });
  }
}

/** One node a user. */
export function listenerNodes(options: object, listener: ListenerContext): readonly LinkNode[] {
  const users = usersOf(fieldsOf(options)["users"]);
  const clients = users.map(({ user, uuid }) => ({ user, type: "vmess", uuid, alterId: 0, cipher: "auto" }));
  return clientNodes(options, listener, clients, "servername");
}
