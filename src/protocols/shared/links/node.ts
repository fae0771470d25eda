/** What the links of most protocols have in common. Every node gets `udp: true`, as other clients have it. */
import { ConfigError } from "#core/errors.ts";
import type { Link, LinkNode } from "#core/share-link.ts";
import { needPort } from "./grammar.ts";

/** The fields that every link of a server gives. Throws `ConfigError` where there is no port. */
export const server = (link: Link, type: string, fallbackPort: number | null = null): LinkNode => ({
  name: link.name,
  type,
  server: link.host,
  port: needPort(link, fallbackPort),
  udp: true,
});

/** The parts of a link that every node gives. */
export const common = (node: LinkNode) => ({
  host: String(node["server"]),
  port: Number(node["port"]),
  name: String(node["name"]),
});

/** Throws `ConfigError` where the link has none. */
export function needUser({ user }: Link): string {
  if (user === "") throw new ConfigError("the link has no credentials");
  return user;
}
