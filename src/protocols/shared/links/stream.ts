/** Transport and security of a node as query parameters (share-links.md §2). */
import { ConfigError, UnusableError } from "#core/errors.ts";
import type { LinkNode } from "#core/share-link.ts";
import { isTrue } from "./grammar.ts";

type Query = ReadonlyMap<string, string>;

/** `sniKey`: what the protocol calls the name of the server in files. */
export function securityFields(
  query: Query,
  fallback: "none" | "tls",
  sniKey: "sni" | "servername",
): LinkNode {
  const security = query.get("security") ?? fallback;
  if (security === "none") return {};
  if (security !== "tls" && security !== "reality") throw new ConfigError(`security ${security} is unknown`);
  const node: LinkNode = { tls: true };
  const name = query.get("sni") ?? query.get("peer") ?? query.get("host")?.split(",")[0]; // h2 has several hosts
  if (name !== undefined) node[sniKey] = name;
  const alpn = query.get("alpn");
  if (alpn !== undefined) node["alpn"] = alpn.split(",");
  const fingerprint = query.get("fp");
  if (fingerprint !== undefined) node["client-fingerprint"] = fingerprint;
  if (isTrue(query.get("allowinsecure")) || isTrue(query.get("insecure"))) node["skip-cert-verify"] = true;
  const pin = pinOf(query.get("pcs") ?? query.get("hpkp"));
  if (pin !== null) node["fingerprint"] = pin;
  const verifyName = query.get("vcn");
  if (verifyName !== undefined) node["name-cert-verify"] = verifyName;
  if (security === "reality") node["reality-opts"] = realityFields(query);
  const ech = echFields(query.get("ech"));
  if (ech !== null && security === "tls") node["ech-opts"] = ech;
  return node;
}

/** A configuration in base64, or where to ask for one: `https://1.1.1.1/dns-query`, with a name in front `name+https://…`. */
function echFields(text: string | undefined): LinkNode | null {
  if (text === undefined) return null;
  if (!text.includes("://")) return { enable: true, config: text };
  const [name = ""] = text.split("://", 1);
  const plus = name.lastIndexOf("+");
  return { enable: true, ...(plus <= 0 ? {} : { "query-server-name": name.slice(0, plus) }) };
}

/** The configuration of a node's Encrypted ClientHello. Throws `UnusableError` where a link cannot carry it. */
export function echQuery(node: LinkNode): string | undefined {
  const ech = mapOf(node["ech-opts"]);
  if (ech?.["enable"] !== true) return undefined;
  const config = textOf(ech["config"]);
  if (config === undefined || config === "")
    throw new UnusableError("a link cannot carry ech-opts without config");
  return config;
}

function realityFields(query: Query): LinkNode {
  const [signature, page] = [query.get("pqv") ?? "", query.get("spx") ?? ""];
  return {
    "public-key": query.get("pbk") ?? "",
    "short-id": query.get("sid") ?? "",
    ...(signature === "" ? {} : { "mldsa65-verify": signature }),
    ...(page === "" ? {} : { "spider-x": page }),
  };
}

/** SHA-256 of a certificate, in hex or base64; of several the first. Throws where it is none: without it anybody may be the server. */
function pinOf(text: string | undefined): string | null {
  if (text === undefined || text === "") return null;
  const first = text.split(/[,~]/)[0]?.replaceAll(":", "") ?? "";
  if (/^[0-9a-f]{64}$/i.test(first)) return first.toLowerCase();
  const bytes = Buffer.from(first, "base64");
  if (bytes.length === 32) return bytes.toString("hex");
  throw new ConfigError("the pin of the certificate is no SHA-256");
}

export function transportFields(query: Query): LinkNode {
  const type = query.get("type")?.toLowerCase() ?? "tcp";
  const host = query.get("host");
  const path = query.get("path") ?? "/";
  if (type === "tcp" || type === "raw") {
    if (query.get("headertype") !== "http") return {};
    return {
      network: "http",
      "http-opts": { path: [path], ...(host ? { headers: { Host: host.split(",") } } : {}) },
    };
  }
  if (type === "ws" || type === "httpupgrade") return webSocketFields(query, type === "httpupgrade");
  if (type === "grpc")
    return { network: "grpc", "grpc-opts": { "grpc-service-name": query.get("servicename") ?? "" } };
  if (type === "http" || type === "h2")
    return { network: "h2", "h2-opts": { path, ...(host ? { host: host.split(",") } : {}) } };
  if (type === "xhttp" || type === "splithttp")
    return {
      network: "xhttp",
      "xhttp-opts": {
        path,
        ...(host ? { host } : {}),
        mode: query.get("mode") ?? "auto",
        ...xhttpExtra(query.get("extra")),
      },
    };
  return { network: type };
}

/** `extra` is JSON with the names of Xray: `scMaxEachPostBytes` is `sc-max-each-post-bytes` in files. */
function xhttpExtra(text: string | undefined): LinkNode {
  if (text === undefined) return {};
  try {
    const { xmux, ...extra } = mapOf(JSON.parse(text)) ?? {};
    const fields = Object.entries(extra).map(([key, value]) => [
      XHTTP_KEYS.get(key) ?? hyphenated(key),
      value,
    ]);
    return { ...Object.fromEntries(fields), ...(xmux === undefined ? {} : { "reuse-settings": xmux }) };
  } catch (error) {
    throw new ConfigError("extra is no JSON", { cause: error });
  }
}

const XHTTP_KEYS: ReadonlyMap<string, string> = new Map([["noGRPCHeader", "no-grpc-header"]]);
/** What of `xhttp-opts` a link carries in `extra`. */
const XHTTP_EXTRAS: ReadonlyMap<string, string> = new Map([
  ["headers", "headers"],
  ["no-grpc-header", "noGRPCHeader"],
  ["sc-max-each-post-bytes", "scMaxEachPostBytes"],
  ["sc-min-posts-interval-ms", "scMinPostsIntervalMs"],
]);

function hyphenated(key: string): string {
  return key.replace(/[A-Z]+/g, (letters) => `-${letters.toLowerCase()}`);
}

function xhttpQuery(options: LinkNode): Record<string, string | undefined> {
  const extra = [...XHTTP_EXTRAS].flatMap(([key, name]) =>
    options[key] === undefined ? [] : [[name, options[key]] as const],
  );
  return {
    type: "xhttp",
    host: textOf(options["host"]),
    path: textOf(options["path"]),
    mode: textOf(options["mode"]),
    extra: extra.length === 0 ? undefined : JSON.stringify(Object.fromEntries(extra)),
  };
}

/** Early data is in the query as `ed`, or inside the path. */
function webSocketFields(query: Query, upgrade: boolean): LinkNode {
  const raw = query.get("path") ?? "/";
  const inPath = /[?&]ed=(\d{1,5})/.exec(raw)?.[1];
  const path =
    raw.replace(/([?&])ed=\d*(&|$)/, (_, lead: string, tail: string) => (tail === "&" ? lead : "")) || "/";
  const early = Number(query.get("ed") ?? inPath ?? 0);
  const host = query.get("host");
  const options: LinkNode = { path };
  if (host !== undefined) options["headers"] = { Host: host };
  if (upgrade) {
    options["v2ray-http-upgrade"] = true;
    if (early > 0) options["v2ray-http-upgrade-fast-open"] = true;
  } else if (early > 0) {
    options["max-early-data"] = early;
    options["early-data-header-name"] = query.get("eh") ?? "Sec-WebSocket-Protocol";
  }
  return { network: "ws", "ws-opts": options };
}

/** The parameters for a node's security and transport. */
export function streamQuery(
  node: LinkNode,
  sniKey: "sni" | "servername",
  tls: boolean,
): Record<string, string | undefined> {
  const reality = mapOf(node["reality-opts"]);
  const secure = tls || reality !== null;
  const alpn = node["alpn"];
  return {
    security: reality !== null ? "reality" : secure ? "tls" : "none",
    sni: textOf(node[sniKey]),
    alpn: Array.isArray(alpn) ? alpn.join(",") : undefined,
    fp: textOf(node["client-fingerprint"]),
    allowInsecure: node["skip-cert-verify"] === true ? "1" : undefined,
    pcs: textOf(node["fingerprint"]),
    pbk: textOf(reality?.["public-key"]),
    sid: textOf(reality?.["short-id"]),
    pqv: textOf(reality?.["mldsa65-verify"]),
    spx: textOf(reality?.["spider-x"]),
    ech: echQuery(node),
    ...transportQuery(node),
  };
}

function transportQuery(node: LinkNode): Record<string, string | undefined> {
  const network = textOf(node["network"]) ?? "tcp";
  const options = mapOf(node[`${network}-opts`]) ?? {};
  const path = textOf(options["path"]);
  if (network === "ws") {
    const early = options["max-early-data"];
    const upgrade = options["v2ray-http-upgrade"] === true;
    const withEarly = typeof early === "number" && early > 0 ? `${path ?? "/"}?ed=${early}` : path;
    return {
      type: upgrade ? "httpupgrade" : "ws",
      host: textOf(mapOf(options["headers"])?.["Host"]),
      path: withEarly,
    };
  }
  if (network === "grpc")
    return { type: "grpc", serviceName: textOf(options["grpc-service-name"]), mode: "gun" };
  if (network === "xhttp") return xhttpQuery(options);
  if (network === "h2") return { type: "h2", host: listText(options["host"]), path };
  if (network === "http")
    return {
      type: "tcp",
      headerType: "http",
      path: listText(options["path"]),
      host: listText(mapOf(options["headers"])?.["Host"]),
    };
  return { type: network === "" ? "tcp" : network, path };
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined;
}

function listText(value: unknown): string | undefined {
  return Array.isArray(value) ? value.join(",") : textOf(value);
}

export function mapOf(value: unknown): LinkNode | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? fieldsOf(value) : null;
}

/** The members of an object that is none of the program's own, such as what a schema gave. */
export function fieldsOf(object: object): LinkNode {
  return { ...object };
}
