/** A user's link as whole profiles of other clients. The names are those clients' own. */
import { stringify } from "yaml";
import type { SubscriptionView } from "#core/users.ts";

type Node = Readonly<Record<string, unknown>>;

/**
 * A list of links in base64, one a line. Blanks in the query are `%20` here: `+` is misread by clients that know
 * percent-escapes only.
 */
export function linkList({ link }: SubscriptionView): string {
  const [, head = "", query = "", tail = ""] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(link) ?? [];
  return Buffer.from(`${head}${query.replaceAll("+", "%20")}${tail}\n`).toString("base64");
}

/** Also for every other client of that family, and for weir. */
export function mihomoProfile({ node }: SubscriptionView): string | null {
  if (node === null) return null;
  const name = String(node["name"]);
  return stringify({
    "mixed-port": 7890,
    mode: "rule",
    "log-level": "info",
    proxies: [node],
    "proxy-groups": [{ name: "PROXY", type: "select", proxies: [name, "DIRECT"] }],
    rules: ["MATCH,PROXY"],
  });
}

/** For version 1.12 and later. Null for transports that it does not have. */
export function singBoxProfile({ node }: SubscriptionView): string | null {
  const outbound = node === null ? null : singBoxOutbound(node);
  if (outbound === null) return null;
  return `${JSON.stringify(
    {
      log: { level: "warn" },
      dns: { servers: [{ type: "local", tag: "local" }] },
      inbounds: [{ type: "mixed", tag: "mixed", listen: "127.0.0.1", listen_port: 2080 }],
      outbounds: [outbound, { type: "direct", tag: "direct" }],
      route: { final: outbound.tag, default_domain_resolver: "local", auto_detect_interface: true },
    },
    null,
    2,
  )}\n`;
}

function singBoxOutbound(node: Node): ({ readonly tag: string } & Node) | null {
  const common = { tag: String(node["name"]), server: node["server"], server_port: node["port"] };
  const { uuid, flow, password, type } = node;
  if (type === "anytls") return { type, ...common, password, tls: tlsOf(node) };
  if (type !== "vless" || (node["encryption"] ?? "none") !== "none") return null;
  const transport = transportOf(node);
  if (transport === null) return null;
  return {
    type,
    ...common,
    uuid,
    ...(flow === undefined ? {} : { flow }),
    ...(node["tls"] === true ? { tls: tlsOf(node) } : {}),
    ...transport,
  };
}

function tlsOf(node: Node): Node {
  const name = node["servername"] ?? node["sni"];
  const reality = node["reality-opts"] as Node | undefined;
  const fingerprint = node["client-fingerprint"];
  return {
    enabled: true,
    ...(name === undefined ? {} : { server_name: name }),
    ...(fingerprint === undefined ? {} : { utls: { enabled: true, fingerprint } }),
    ...(reality === undefined
      ? {}
      : {
          reality: { enabled: true, public_key: reality["public-key"], short_id: reality["short-id"] },
        }),
  };
}

/** Empty: plain TCP. Null: there is no such transport. */
function transportOf(node: Node): Node | null {
  const network = (node["network"] ?? "tcp") as string;
  if (network === "tcp") return {};
  const options = (node[`${network}-opts`] ?? {}) as Node;
  if (network === "grpc") return { transport: { type: "grpc", service_name: options["grpc-service-name"] } };
  const { path, host } = options;
  if (network === "h2") return { transport: { type: "http", path, ...(host === undefined ? {} : { host }) } };
  if (network !== "ws") return null;
  const early = options["max-early-data"];
  const header = options["early-data-header-name"];
  return {
    transport: {
      type: "ws",
      path,
      ...(early === undefined ? {} : { max_early_data: early, early_data_header_name: header }),
    },
  };
}
