/** A user's link as whole profiles of other clients. The names are those clients' own. */
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

/** Also for every other client of that family, and for weir. Null: it has none of the nodes. */
export function mihomoProfile(view: SubscriptionView): string | null {
  const nodes = linksOf(view).flatMap(({ mihomo }) => (mihomo === null ? [] : [mihomo]));
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

const LOCAL = { type: "local", tag: "local" };
const PORT = { type: "mixed", tag: "mixed", listen: "127.0.0.1", listen_port: 2080 };

/** For who starts sing-box as a program: a port. */
const ONE_PORT = { dns: { servers: [LOCAL] }, inbounds: [PORT], rules: {}, more: {} };

/**
 * For sing-box's own apps: they make a VPN of the TUN, and where there is none nothing of the device enters. Names go to the
 * node as names, so that no nameserver of the place where the client is decides.
 */
const WHOLE_DEVICE = {
  dns: {
    servers: [
      LOCAL,
      { type: "fakeip", tag: "fakeip", inet4_range: "198.18.0.0/15", inet6_range: "fc00::/18" },
    ],
    rules: [
      { query_type: ["A", "AAAA"], server: "fakeip" },
      { query_type: ["HTTPS", "SVCB"], action: "predefined", rcode: "NOERROR" },
    ],
    final: "local",
  },
  inbounds: [
    {
      type: "tun",
      tag: "tun",
      address: ["172.19.0.1/30", "fdfe:dcba:9876::1/126"],
      auto_route: true,
      strict_route: true,
    },
    PORT,
  ],
  rules: {
    rules: [
      { port: 53, action: "hijack-dns" },
      { ip_is_private: true, outbound: "direct" },
    ],
  },
  more: { experimental: { cache_file: { enabled: true, store_fakeip: true } } },
};

/** For version 1.12 and later. `isApp`: it is one of its own apps. Null for transports that it does not have. */
export function singBoxProfile(view: SubscriptionView, isApp: boolean): string | null {
  const outbounds = linksOf(view).flatMap(({ singBox }) => singBox ?? []);
  const [first] = outbounds;
  if (first === undefined) return null;
  const tags = outbounds.map(({ tag }) => tag);
  const choice = tags.length === 1 ? [] : [{ type: "selector", tag: CHOICE, outbounds: tags }];
  const { dns, inbounds, rules, more } = isApp ? WHOLE_DEVICE : ONE_PORT;
  return `${JSON.stringify(
    {
      log: { level: "warn" },
      dns,
      inbounds,
      outbounds: [...choice, ...outbounds, { type: "direct", tag: "direct" }],
      route: {
        ...rules,
        final: tags.length === 1 ? first.tag : CHOICE,
        default_domain_resolver: "local",
        auto_detect_interface: true,
      },
      ...more,
    },
    null,
    2,
  )}\n`;
}
