/** A user's link as whole profiles of other clients. The names are those clients' own. */
import type { LinkNode } from "#core/share-link.ts";
import type { SubscriptionLink, SubscriptionView } from "#core/users.ts";
import { yamlText } from "#lib/yaml-text.ts";

/** What a client chooses one of several nodes by. */
const CHOICE = "PROXY";

/**
 * A list of links in base64, one a line. Blanks in the query are `%20` here: `+` is misread by clients that know
 * percent-escapes only.
 */
export function linkList(view: SubscriptionView): string {
  return Buffer.from(
    linksOf(view)
      .map(({ link }) => listed(link))
      .join(""),
  ).toString("base64");
}

/** The user's nodes, the first of which a view has as its own. */
export function linksOf(view: SubscriptionView): readonly SubscriptionLink[] {
  return [view, ...(view.further ?? [])];
}

function listed(link: string): string {
  const [, head = "", query = "", tail = ""] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(link) ?? [];
  return `${head}${query.replaceAll("+", "%20")}${tail}\n`;
}

/** Also for every other client of that family, and for weir. */
export function mihomoProfile(view: SubscriptionView): string | null {
  const nodes = linksOf(view).flatMap(({ node }): readonly Readonly<LinkNode>[] =>
    node === null ? [] : [node],
  );
  if (nodes.length === 0) return null;
  const names = nodes.map((node) => String(node["name"]));
  return yamlText({
    "mixed-port": 7890,
    mode: "rule",
    "log-level": "info",
    proxies: nodes,
    "proxy-groups": [{ name: "PROXY", type: "select", proxies: [...names, "DIRECT"] }],
    rules: ["MATCH,PROXY"],
  });
}

/** For version 1.12 and later. Null for transports that it does not have. */
export function singBoxProfile(view: SubscriptionView): string | null {
  const outbounds = linksOf(view).flatMap(({ singBox }) => singBox ?? []);
  const [first] = outbounds;
  if (first === undefined) return null;
  const tags = outbounds.map(({ tag }) => tag);
  const choice = tags.length === 1 ? [] : [{ type: "selector", tag: CHOICE, outbounds: tags }];
  return `${JSON.stringify(
    {
      log: { level: "warn" },
      dns: { servers: [{ type: "local", tag: "local" }] },
      inbounds: [{ type: "mixed", tag: "mixed", listen: "127.0.0.1", listen_port: 2080 }],
      outbounds: [...choice, ...outbounds, { type: "direct", tag: "direct" }],
      route: {
        final: tags.length === 1 ? first.tag : CHOICE,
        default_domain_resolver: "local",
        auto_detect_interface: true,
      },
    },
    null,
    2,
  )}\n`;
}
