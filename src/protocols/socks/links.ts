/** Nodes of this protocol as share links (share-links.md §3). */
import type { LinkForm } from "#core/share-link.ts";
import { accountOf, accountText } from "#protocols/shared/links/account.ts";
import { joinLink } from "#protocols/shared/links/grammar.ts";
import { common, server } from "#protocols/shared/links/node.ts";

export const links: LinkForm = {
  schemes: ["socks", "socks5", "socks5h"],
  read: (link) => ({ ...server(link, "socks5"), ...accountOf(link) }),
  write: (node) => joinLink({ scheme: "socks", user: accountText(node), ...common(node), query: {} }),
};
