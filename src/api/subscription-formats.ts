/** A user's link as whole profiles of other clients. The names are those clients' own. */
import { stringify } from "yaml";
import type { SubscriptionView } from "#core/users.ts";

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
export function singBoxProfile({ singBox: outbound }: SubscriptionView): string | null {
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
