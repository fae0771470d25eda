/** An outbound of Xray's WireGuard (infra/conf/wireguard.go), such as the WARP of panels, as a node. */
import type { LinkNode } from "#core/share-link.ts";
import { countOf, objectOf, objectsOf, textOf, textsOf, type Json } from "./json.ts";

const ADDRESS_AND_PORT = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/;

/** Why there is no such node, or the node without its name. */
export function wireGuardOf(settings: Json): LinkNode | string {
  const [first, second] = objectsOf(settings["peers"]);
  if (second !== undefined) return "several servers in one outbound are not taken";
  const peer = objectOf(first?.[1]);
  const [, bracketed, bare, port] = ADDRESS_AND_PORT.exec(textOf(peer["endpoint"])) ?? [];
  const server = bracketed ?? bare;
  if (server === undefined) return "it has no server";
  const addresses = textsOf(settings["address"]);
  const allowed = textsOf(peer["allowedIPs"]);
  const reserved = settings["reserved"];
  return {
    type: "wireguard",
    server,
    port: Number(port),
    "private-key": textOf(settings["secretKey"]),
    "public-key": textOf(peer["publicKey"]),
    udp: true,
    ...given(
      "ip",
      addresses.find((text) => text.includes(".")),
    ),
    ...given(
      "ipv6",
      addresses.find((text) => text.includes(":")),
    ),
    ...given("pre-shared-key", textOf(peer["preSharedKey"])),
    ...given("mtu", countOf(settings["mtu"])),
    ...given("persistent-keepalive", countOf(peer["keepAlive"])),
    ...given("allowed-ips", allowed.length === 0 ? undefined : allowed),
    ...given("reserved", Array.isArray(reserved) && reserved.length === 0 ? undefined : reserved),
  };
}

/** Nothing where it is empty. */
function given(key: string, value: unknown): LinkNode {
  return value === undefined || value === "" || value === 0 ? {} : { [key]: value };
}
