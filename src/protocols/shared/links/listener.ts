/** The nodes that clients of a listener need, one a user. */
import type { LinkNode, ListenerContext } from "#core/share-link.ts";
import { publicKeyOf } from "./public-key.ts";
import { mapOf, textOf } from "./stream.ts";

/** What one user's node has besides the listener's own fields; `user` null: the listener has no users. */
export type ClientFields = LinkNode & { readonly user: string | null };

/** `options` as the listener's schema gives them. `nameKey`: what nodes of the protocol call the name of the server. */
export function clientNodes(
  options: object,
  listener: ListenerContext,
  clients: readonly ClientFields[],
  nameKey: "sni" | "servername" = "sni",
): readonly LinkNode[] {
  const fields = options as LinkNode;
  const { name, server, port } = listener;
  return clients.map(({ user, ...own }) => ({
    name: user === null ? name : `${name} ${user}`,
    server,
    port,
    ...own,
    ...security(fields, listener, nameKey),
    ...transport(fields),
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
  return { tls: true, ...(serverName === null ? {} : { [key]: serverName }) };
}

function transport(fields: LinkNode): LinkNode {
  const path = textOf(fields["ws-path"]);
  if (path !== undefined && path !== "") return { network: "ws", "ws-opts": { path } };
  const service = textOf(fields["grpc-service-name"]);
  return service === undefined || service === ""
    ? {}
    : { network: "grpc", "grpc-opts": { "grpc-service-name": service } };
}

function first(value: unknown): string | undefined {
  return textOf(Array.isArray(value) ? value[0] : value);
}
