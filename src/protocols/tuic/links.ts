/** Nodes of this protocol as share links (share-links.md §3) and as other programs write them. */
import type { LinkForm, LinkNode, ListenerContext, SingBoxOutbound } from "#core/share-link.ts";
import { isTrue, joinLink } from "#protocols/shared/links/grammar.ts";
import { common, needUser, server } from "#protocols/shared/links/node.ts";
import { clientNodes, usersOf } from "#protocols/shared/links/listener.ts";
import { singBoxHead, singBoxTls } from "#protocols/shared/links/sing-box.ts";
import { fieldsOf, textOf } from "#protocols/shared/links/stream.ts";

export const links: LinkForm = {
  schemes: ["tuic"],
  read(link) {
    const [first = "", ...password] = needUser(link).split(":");
    const { query } = link;
    const insecure = query.get("allow_insecure") ?? query.get("insecure");
    return {
      ...server(link, "tuic", 443),
      ...(password.length === 0 ? { token: first } : { uuid: first, password: password.join(":") }),
      ...(query.has("sni") ? { sni: query.get("sni") } : {}),
      ...(query.has("alpn") ? { alpn: query.get("alpn")?.split(",") } : {}),
      ...(query.has("congestion_control")
        ? { "congestion-controller": query.get("congestion_control") }
        : {}),
      ...(query.has("udp_relay_mode") ? { "udp-relay-mode": query.get("udp_relay_mode") } : {}),
      ...(isTrue(query.get("disable_sni")) ? { "disable-sni": true } : {}),
      ...(isTrue(insecure) ? { "skip-cert-verify": true } : {}),
    };
  },
  write: (node) =>
    joinLink({
      scheme: "tuic",
      user: `${textOf(node["uuid"]) ?? ""}:${encodeURIComponent(textOf(node["password"]) ?? "")}`,
      ...common(node),
      query: {
        congestion_control: textOf(node["congestion-controller"]),
        udp_relay_mode: textOf(node["udp-relay-mode"]),
        alpn: Array.isArray(node["alpn"]) ? node["alpn"].join(",") : undefined,
        sni: textOf(node["sni"]),
        disable_sni: node["disable-sni"] === true ? "1" : undefined,
        allow_insecure: node["skip-cert-verify"] === true ? "1" : undefined,
      },
    }),
};

/** One node a user. */
export function listenerNodes(options: object, listener: ListenerContext): readonly LinkNode[] {
  const fields = fieldsOf(options);
  const clients = usersOf(fields["users"]).map(({ user, password }) => ({
    user,
    type: "tuic",
    uuid: user,
    password,
    alpn: fields["alpn"] ?? ["h3"],
  }));
  return clientNodes(options, listener, clients);
}

export function singBox(node: LinkNode): SingBoxOutbound {
  const controller = textOf(node["congestion-controller"]);
  const mode = textOf(node["udp-relay-mode"]);
  return {
    ...singBoxHead("tuic", node),
    uuid: node["uuid"],
    password: node["password"],
    ...(controller === undefined ? {} : { congestion_control: controller }),
    ...(mode === undefined ? {} : { udp_relay_mode: mode }),
    tls: {
      ...singBoxTls(node),
      alpn: node["alpn"] ?? ["h3"],
      ...(node["disable-sni"] === true ? { disable_sni: true } : {}),
      ...(node["skip-cert-verify"] === true ? { insecure: true } : {}),
    },
  };
}
