/** Nodes of this protocol as share links (share-links.md §3) and as other programs write them. */
import type { LinkForm, LinkNode, ListenerContext, SingBoxOutbound } from "#core/share-link.ts";
import { isTrue, joinLink } from "#protocols/shared/links/grammar.ts";
import { common, server } from "#protocols/shared/links/node.ts";
import { singBoxHead, singBoxTls } from "#protocols/shared/links/sing-box.ts";
import { clientNodes, usersOf } from "#protocols/shared/links/listener.ts";
import { fieldsOf, textOf } from "#protocols/shared/links/stream.ts";

/** Keys that links and nodes have under one name. */
const SHARED = ["obfs", "sni", "up", "down"] as const;

export const links: LinkForm = {
  schemes: ["hysteria2", "hy2"],
  read(link) {
    const { query } = link;
    const ports = query.get("mport") ?? link.ports;
    const pin = query.get("pinsha256");
    return {
      ...server(link, "hysteria2", 443),
      password: link.user,
      ...Object.fromEntries(SHARED.flatMap((key) => (query.has(key) ? [[key, query.get(key)]] : []))),
      ...(query.has("obfs") ? { "obfs-password": query.get("obfs-password") ?? "" } : {}),
      ...(ports === null ? {} : { ports }),
      ...(pin === undefined ? {} : { fingerprint: pin }),
      ...(isTrue(query.get("insecure")) ? { "skip-cert-verify": true } : {}),
    };
  },
  write: (node) =>
    joinLink({
      scheme: "hysteria2",
      user: encodeURIComponent(textOf(node["password"]) ?? ""),
      ...common(node),
      path: "/",
      query: {
        obfs: textOf(node["obfs"]),
        "obfs-password": textOf(node["obfs-password"]),
        sni: textOf(node["sni"]),
        mport: textOf(node["ports"]),
        pinSHA256: textOf(node["fingerprint"]),
        insecure: node["skip-cert-verify"] === true ? "1" : undefined,
      },
    }),
};

/** One node a user; with the disguise of the listener, without which nothing would be answered. */
export function listenerNodes(options: object, listener: ListenerContext): readonly LinkNode[] {
  const fields = fieldsOf(options);
  const obfs = textOf(fields["obfs"]) ?? "";
  const disguise = obfs === "" ? {} : { obfs, "obfs-password": fields["obfs-password"] };
  const clients = usersOf(fields["users"]).map(({ user, password }) => ({
    user,
    type: "hysteria2",
    password,
    ...disguise,
  }));
  return clientNodes(options, listener, clients);
}

/** It does not know gecko. */
export function singBox(node: LinkNode): SingBoxOutbound | null {
  const obfs = textOf(node["obfs"]);
  if (obfs === "gecko") return null;
  return {
    ...singBoxHead("hysteria2", node),
    password: node["password"],
    ...(obfs === undefined ? {} : { obfs: { type: obfs, password: node["obfs-password"] } }),
    tls: { ...singBoxTls(node), ...(node["skip-cert-verify"] === true ? { insecure: true } : {}) },
  };
}
