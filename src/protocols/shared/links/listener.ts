/** The nodes that clients of a listener need, one a user. */
import { UnusableError } from "#core/errors.ts";
import type { LinkNode, ListenerContext } from "#core/share-link.ts";
import { XHTTP_TUNING } from "#transport/fields.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import { publicKeyOf, publishedEch } from "./public-key.ts";
import { mapOf, textOf, fieldsOf } from "./stream.ts";

/** What one user's node has besides the listener's own fields; `user` null: the listener has no users. */
export type ClientFields = LinkNode & { readonly user: string | null };

/**
 * `options` as the listener's schema gives them. Throws `UnusableError`, which names the keys, where no link would work.
 * `nameKey`: what nodes of the protocol call the name of the server.
 */
export function clientNodes(
  options: object,
  listener: ListenerContext,
  clients: readonly ClientFields[],
  nameKey: "sni" | "servername" = "sni",
): readonly LinkNode[] {
  const fields = fieldsOf(options);
  const { name, server, port } = listener;
  const carrier = transport(fields);
  return clients.map(({ user, ...own }) => ({
    name: user === null ? name : `${name} ${user}`,
    server,
    port,
    ...own,
    ...security(fields, listener, nameKey),
    ...carrier,
  }));
}

/** A list of maps, or a map of names to passwords. */
export function usersOf(users: unknown): readonly ClientFields[] {
  if (Array.isArray(users))
    return users.map((item: unknown) => {
      const entry = mapOf(item) ?? {};
      return { ...entry, user: textOf(entry["username"]) ?? null };
    });
  return Object.entries(mapOf(users) ?? {}).map(([user, password]) => ({ user, password }));
}

function security(fields: LinkNode, { serverName }: ListenerContext, key: "sni" | "servername"): LinkNode {
  const reality = mapOf(fields["reality-config"]);
  if (reality !== null) {
    const [name, shortId] = [first(reality["server-names"]), first(reality["short-id"])];
    const options = { "public-key": publicKeyOf(String(reality["private-key"])), "short-id": shortId ?? "" };
    return { tls: true, [key]: name, "client-fingerprint": "chrome", "reality-opts": options };
  }
  if (textOf(fields["certificate"]) === undefined) return {};
  const ech = publishedEch(textOf(fields["ech-key"]));
  return {
    tls: true,
    ...(serverName === null ? {} : { [key]: serverName }),
    ...(ech === null ? {} : { "ech-opts": { enable: true, config: ech } }),
  };
}

/** Of several transports on the one port the first. */
function transport(fields: LinkNode): LinkNode {
  const path = textOf(fields["ws-path"]);
  if (path !== undefined && path !== "") return { network: "ws", "ws-opts": { path } };
  const service = textOf(fields["grpc-service-name"]);
  if (service !== undefined && service !== "")
    return { network: "grpc", "grpc-opts": { "grpc-service-name": service } };
  const xhttp = mapOf(fields["xhttp-config"]);
  if (xhttp !== null) {
    const keys = tunedKeys(xhttp).map((key) => `xhttp-config.${key}`);
    if (keys.length > 0)
      throw new UnusableError(`a link cannot carry ${keys.join(", ")}, and clients that know it alone fail`);
    const alpn = fields["alpn"];
    return {
      network: "xhttp",
      "xhttp-opts": xhttp,
      ...(isOverQuicAlone(alpn) ? { alpn: [HTTP3_ALPN] } : {}),
    };
  }
  const h2 = mapOf(fields["h2-config"]);
  return h2 === null ? {} : { network: "h2", "h2-opts": h2 };
}

/** By `alpn` of a listener with XHTTP; one that is reached over TCP, too, is reached so by its links. */
export function isOverQuicAlone(alpn: unknown): boolean {
  return Array.isArray(alpn) && alpn.length === 1 && alpn[0] === HTTP3_ALPN;
}

/** What the listener was given and a link cannot say. */
export function tunedKeys(xhttp: Readonly<LinkNode>): readonly string[] {
  return XHTTP_TUNING.filter((key) => xhttp[key] !== undefined);
}

function first(value: unknown): string | undefined {
  return textOf(Array.isArray(value) ? value[0] : value);
}
