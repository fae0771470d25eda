/** Nodes of this protocol as share links (share-link sheet §3) and as other programs write them. */
import type { LinkForm, LinkNode, ListenerContext, SingBoxOutbound } from "#core/share-link.ts";
import { joinLink } from "#protocols/shared/links/grammar.ts";
import { common, needUser, server } from "#protocols/shared/links/node.ts";
import { clientNodes, usersOf } from "#protocols/shared/links/listener.ts";
import { singBoxHead, singBoxTls, singBoxTransport } from "#protocols/shared/links/sing-box.ts";
import { securityFields, streamQuery, textOf, transportFields } from "#protocols/shared/links/stream.ts";

export const links: LinkForm = {
  schemes: ["vless"],
  read(link) {
    const encryption = link.query.get("encryption") ?? "none";
    const flow = link.query.get("flow")?.toLowerCase();
    const packets = link.query.get("packetencoding");
    return {
      ...server(link, "vless"),
      uuid: needUser(link),
      ...(encryption === "none" ? {} : { encryption }),
      ...(flow === undefined ? {} : { flow }),
      ...(packets === undefined ? {} : { "packet-encoding": packets === "packet" ? "packetaddr" : packets }),
      ...securityFields(link.query, "none", "servername"),
      ...transportFields(link.query),
    };
  },
  write: (node) =>
    joinLink({
      scheme: "vless",
      user: encodeURIComponent(String(node["uuid"])),
      ...common(node),
      query: {
        encryption: textOf(node["encryption"]) || "none",
        flow: textOf(node["flow"]),
        ...streamQuery(node, "servername", node["tls"] === true),
      },
    }),
};

/** One node a user. */
export function listenerNodes(options: object, listener: ListenerContext): readonly LinkNode[] {
  const users = usersOf((options as LinkNode)["users"]);
  const clients = users.map(({ user, uuid, flow }) => ({ user, type: "vless", uuid, flow }));
  return clientNodes(options, listener, clients, "servername");
}

/** Null: encryption, and some transports, do not exist there. */
export function singBox(node: LinkNode): SingBoxOutbound | null {
  const transport = singBoxTransport(node);
  if (transport === null || (node["encryption"] ?? "none") !== "none") return null;
  const { uuid, flow } = node;
  return {
    ...singBoxHead("vless", node),
    uuid,
    ...(flow === undefined ? {} : { flow }),
    ...(node["tls"] === true ? { tls: singBoxTls(node) } : {}),
    ...transport,
  };
}
