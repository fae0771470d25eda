/** The networks of this machine's own interfaces: traffic to them is never captured. */
import type { Prefix } from "#core/capture.ts";
import { cidrHolds, cidrOf } from "#net/address/cidr.ts";
import { findLink, listAddresses, type NetlinkSocket } from "#platform/netlink.ts";

const NOT_GLOBAL = [
  "0.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/3",
  "::/127",
  "fe80::/10",
  "ff00::/8",
].map(cidrOf);

/** All prefixes of `lo` and every prefix of global unicast, private ones among them. */
export function localNetworks(socket: NetlinkSocket): readonly Prefix[] {
  const loopback = findLink(socket, "lo")?.index ?? 1;
  return listAddresses(socket, null)
    .filter(({ link, address }) => link === loopback || !NOT_GLOBAL.some((cidr) => cidrHolds(cidr, address)))
    .map(({ address, bits }) => ({ bytes: address, bits }));
}
