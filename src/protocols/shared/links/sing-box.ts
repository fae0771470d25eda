/** Parts of a node under the names that sing-box has for them. */
import type { LinkNode } from "#core/share-link.ts";
import { echQuery, mapOf, textOf } from "./stream.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The fields that every outbound begins with. */
export function singBoxHead(type: string, node: LinkNode) {
  return { type, tag: String(node["name"]), server: node["server"], server_port: node["port"] };
}

export function singBoxTls(node: LinkNode): Fields {
  const name = node["servername"] ?? node["sni"];
  const reality = mapOf(node["reality-opts"]);
  const fingerprint = node["client-fingerprint"];
  const ech = echQuery(node);
  return {
    enabled: true,
    ...(name === undefined ? {} : { server_name: name }),
    ...(fingerprint === undefined ? {} : { utls: { enabled: true, fingerprint } }),
    ...(reality === null
      ? {}
      : {
          reality: { enabled: true, public_key: reality["public-key"], short_id: reality["short-id"] },
        }),
    ...(ech === undefined ? {} : { ech: { enabled: true, config: pemLines(ech) } }),
  };
}

/** The configurations as sing-box has them: PEM, a line an item. */
function pemLines(config: string): readonly string[] {
  return ["-----BEGIN ECH CONFIGS-----", config, "-----END ECH CONFIGS-----"];
}

/** Empty: plain TCP. Null: there is no such transport. */
export function singBoxTransport(node: LinkNode): Fields | null {
  const network = textOf(node["network"]) ?? "tcp";
  if (network === "tcp") return {};
  const options = mapOf(node[`${network}-opts`]) ?? {};
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
