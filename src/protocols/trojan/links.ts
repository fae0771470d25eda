/** Nodes of this protocol as share links (share-links.md §3). */
import type { LinkForm, LinkNode, ListenerContext } from "#core/share-link.ts";
import { joinLink } from "#protocols/shared/links/grammar.ts";
import { common, needUser, server } from "#protocols/shared/links/node.ts";
import { clientNodes, usersOf } from "#protocols/shared/links/listener.ts";
import { securityFields, streamQuery, transportFields, fieldsOf } from "#protocols/shared/links/stream.ts";

export const links: LinkForm = {
  schemes: ["trojan"],
  read(link) {
    const { tls: _always, ...security } = securityFields(link.query, "tls", "sni");
    return {
      ...server(link, "trojan", 443),
      password: needUser(link),
      ...security,
      ...transportFields(link.query),
    };
  },
  write: (node) =>
    joinLink({
      scheme: "trojan",
      user: encodeURIComponent(String(node["password"])),
      ...common(node),
      query: streamQuery(node, "sni", true),
    }),
};

/** One node a user. */
export function listenerNodes(options: object, listener: ListenerContext): readonly LinkNode[] {
  const users = usersOf(fieldsOf(options)["users"]);
  const clients = users.map(({ user, password }) => ({ user, type: "trojan", password }));
  return clientNodes(options, listener, clients);
}
