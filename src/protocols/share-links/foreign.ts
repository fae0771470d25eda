/** Links of protocols that this build does not speak: what they are called, so that a list shows its nodes whole. */
import { ConfigError } from "#core/errors.ts";
import type { LinkNode } from "#core/share-link.ts";
import { decodeBase64, splitAuthority, splitLink } from "#protocols/shared/links/grammar.ts";

const TYPES: ReadonlyMap<string, string> = new Map([
  ["ssr", "ssr"],
  ["hysteria", "hysteria"],
  ["hy", "hysteria"],
  ["snell", "snell"],
  ["mieru", "mieru"],
  ["mierus", "mieru"],
  ["ssh", "ssh"],
  ["sudoku", "sudoku"],
  ["juicity", "juicity"],
  ["naive+https", "naive"],
  ["naive+quic", "naive"],
  ["tt", "trusttunnel"],
]);

/** Null for a scheme that is not one of nodes. Throws `ConfigError`, which never shows the link. */
export function foreignNode(scheme: string, link: string): LinkNode | null {
  const type = TYPES.get(scheme);
  if (type === undefined) return null;
  if (type === "ssr") return ssrNode(link);
  const { name, host, port } = splitLink(link);
  return { name, type, server: host, ...(port === null ? {} : { port }) };
}

/** ssr://base64(host:port:protocol:method:obfs:base64(password)/?remarks=base64(name)…) */
function ssrNode(link: string): LinkNode {
  const text = decodeBase64(link.slice("ssr://".length)) ?? "";
  const [position = "", query = ""] = text.split("/?", 2);
  const [, authority = ""] = /^(.*)(?::[^:]*){4}$/s.exec(position) ?? [];
  if (authority === "") throw new ConfigError("the ssr link lacks its server");
  const { host, port } = splitAuthority(authority);
  const remarks = new URLSearchParams(query).get("remarks")?.replaceAll(" ", "+") ?? "";
  return { name: decodeBase64(remarks) ?? authority, type: "ssr", server: host, port };
}
