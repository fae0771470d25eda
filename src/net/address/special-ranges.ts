/** Networks that are not the public internet. https://www.iana.org/assignments/iana-ipv4-special-registry, -ipv6- likewise. */
import { cidrOf } from "./cidr.ts";
import { CidrTable } from "./cidr-trie.ts";

/** Loopback, unspecified and link-local. `::/96` has `::`, `::1` and the spelling `::127.0.0.1`. */
export const THIS_MACHINE = table("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "::/96", "fe80::/10");

/** Private, shared, multicast, reserved. */
export const PRIVATE = table(
  "10.0.0.0/8",
  "100.64.0.0/10",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "fc00::/7",
  "fec0::/10",
  "ff00::/8",
);

/** Besides these: addresses behind which an IPv4 address of the same kinds can stand, and documentation, benchmarks, protocols. */
export const NOT_GLOBAL = table(
  "192.0.0.0/24",
  "192.0.2.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "::ffff:0:0/96",
  "64:ff9b::/96",
  "64:ff9b:1::/48",
  "100::/64",
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
);

function table(...texts: readonly string[]): CidrTable {
  return new CidrTable(texts.map(cidrOf));
}
