/** Nodes of this protocol as share links (share-links.md §3). */
import type { LinkForm } from "#core/share-link.ts";
import { accountOf, accountText } from "#protocols/shared/links/account.ts";
import { joinLink } from "#protocols/shared/links/grammar.ts";
import { common, server } from "#protocols/shared/links/node.ts";
import { textOf } from "#protocols/shared/links/stream.ts";

export const links: LinkForm = {
  schemes: ["http", "https"],
  read(link) {
    const { udp: _none, ...node } = server(link, "http");
    const tls =
      link.scheme === "https"
        ? { tls: true, ...(link.query.has("sni") ? { sni: link.query.get("sni") } : {}) }
        : {};
    return { ...node, ...accountOf(link), ...tls };
  },
  write: (node) =>
    joinLink({
      scheme: node["tls"] === true ? "https" : "http",
      user: accountText(node),
      ...common(node),
      query: node["tls"] === true ? { sni: textOf(node["sni"]) } : {},
    }),
};
