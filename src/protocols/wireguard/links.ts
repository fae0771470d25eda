/** Nodes of this protocol as share links, as v2rayN, Hiddify and NekoBox write them. */
import { ConfigError } from "#core/errors.ts";
import type { Link, LinkForm, LinkNode } from "#core/share-link.ts";
import { joinLink } from "#protocols/shared/links/grammar.ts";
import { common, needUser, server } from "#protocols/shared/links/node.ts";
import { textOf } from "#protocols/shared/links/stream.ts";

const DEFAULT_PORT = 51_820;

export const links: LinkForm = {
  schemes: ["wireguard", "wg"],
  read(link) {
    const publicKey = base64(first(link, "publickey", "public_key", "peer_public_key"));
    if (publicKey === undefined) throw new ConfigError("the link has no public key of its server");
    const addresses = (first(link, "address", "ip", "local_address") ?? "")
      .split(",")
      .map((text) => text.trim());
    const reserved = base64(first(link, "reserved"));
    return {
      ...server(link, "wireguard", DEFAULT_PORT),
      "private-key": needUser(link),
      "public-key": publicKey,
      ...keyed(
        "ip",
        addresses.find((text) => text.includes(".")),
      ),
      ...keyed(
        "ipv6",
        addresses.find((text) => text.includes(":")),
      ),
      ...keyed("pre-shared-key", base64(first(link, "presharedkey", "pre_shared_key"))),
      ...keyed("mtu", first(link, "mtu")),
      ...keyed("persistent-keepalive", first(link, "keepalive", "persistentkeepalive")),
      ...keyed("reserved", reserved?.includes(",") === true ? reserved.split(",").map(Number) : reserved),
    };
  },
  write: (node) =>
    joinLink({
      scheme: "wireguard",
      user: encodeURIComponent(textOf(node["private-key"]) ?? ""),
      ...common(node),
      query: {
        publickey: textOf(node["public-key"]),
        presharedkey: textOf(node["pre-shared-key"]),
        address: [textOf(node["ip"]), textOf(node["ipv6"])].filter((text) => text !== undefined).join(","),
        reserved: Array.isArray(node["reserved"]) ? node["reserved"].join(",") : textOf(node["reserved"]),
        mtu: numberText(node["mtu"]),
        keepalive: numberText(node["persistent-keepalive"]),
      },
    }),
};

function first({ query }: Link, ...names: readonly string[]): string | undefined {
  const found = names.map((name) => query.get(name)).find((value) => value !== undefined && value !== "");
  return found;
}

/** With a plus sign that was not escaped. */
const base64 = (text: string | undefined) => text?.replaceAll(" ", "+");

const keyed = (key: string, value: unknown): LinkNode => (value === undefined ? {} : { [key]: value });

/** Zero is the same as nothing. */
const numberText = (value: unknown) =>
  typeof value === "number" && value > 0 ? String(value) : textOf(value);
