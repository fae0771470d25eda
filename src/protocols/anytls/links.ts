/** Nodes of this protocol as share links (share-links.md §3) and as other programs write them. */
import type { LinkedUser, PublicAddress } from "#core/protocol.ts";
import type { LinkForm, LinkNode, ListenerContext, SingBoxOutbound } from "#core/share-link.ts";
import { joinLink } from "#protocols/shared/links/grammar.ts";
import { common, needUser, server } from "#protocols/shared/links/node.ts";
import { clientNodes, usersOf } from "#protocols/shared/links/listener.ts";
import { securityQuery, shareLink } from "#protocols/shared/links/managed-link.ts";
import { singBoxHead, singBoxTls } from "#protocols/shared/links/sing-box.ts";
import { echQuery, fieldsOf, securityFields, textOf } from "#protocols/shared/links/stream.ts";
import type { InboundOptions } from "./options.ts";

export const links: LinkForm = {
  schemes: ["anytls"],
  read(link) {
    const { tls: _always, ...security } = securityFields(link.query, "tls", "sni");
    return { ...server(link, "anytls", 443), password: needUser(link), ...security };
  },
  write: (node) =>
    joinLink({
      scheme: "anytls",
      user: encodeURIComponent(String(node["password"])),
      ...common(node),
      path: "/",
      query: {
        sni: textOf(node["sni"]),
        insecure: node["skip-cert-verify"] === true ? "1" : undefined,
        hpkp: textOf(node["fingerprint"]),
        ech: echQuery(node),
      },
    }),
};

/** One node a user. */
export function listenerNodes(options: object, listener: ListenerContext): readonly LinkNode[] {
  const users = usersOf(fieldsOf(options)["users"]);
  const clients = users.map(({ user, password }) => ({ user, type: "anytls", password }));
  return clientNodes(options, listener, clients);
}

/** The link of a managed user, byte for byte as the admin API promises it; null where no link would work. */
export function managedLink(
  options: InboundOptions,
  address: PublicAddress,
  { name, credential }: LinkedUser,
): string | null {
  const security = securityQuery(options, address);
  if (Object.keys(security).length === 0) return null; // clients of this protocol always speak TLS
  return shareLink({
    scheme: "anytls",
    credential: [credential],
    address,
    query: { type: "tcp", ...security },
    name,
  });
}

/** It has no REALITY here: it would open TLS with the site that REALITY borrows, and log in there. */
export function isOfMihomo(node: LinkNode): boolean {
  return node["reality-opts"] === undefined;
}

export function singBox(node: LinkNode): SingBoxOutbound {
  return { ...singBoxHead("anytls", node), password: node["password"], tls: singBoxTls(node) };
}
