/** Type words of the ecosystem that no registry of this build has: a known word is a warning, not a mistake. */
import { NAME_RULE_TYPES } from "#net/dial/dns-policy.ts";

export const FOREIGN_PROXY_TYPES: readonly string[] = [
  "ssh",
  "snell",
  "ssr",
  "hysteria",
  "mieru",
  "sudoku",
  "masque",
  "openvpn",
  "tailscale",
  "trusttunnel",
  "shadowquic",
  "gost-relay",
  "rematch",
];

export const FOREIGN_LISTENER_TYPES: readonly string[] = [
  "tun",
  "snell",
  "hysteria2-realm",
  "mieru",
  "sudoku",
  "trusttunnel",
  "shadowquic",
];

export const GROUP_TYPES: readonly string[] = ["select", "url-test", "fallback", "load-balance", "relay"];

export const RULE_TYPES: readonly string[] = [
  ...NAME_RULE_TYPES,
  "GEOIP",
  "SRC-GEOIP",
  "IP-ASN",
  "SRC-IP-ASN",
  "IP-CIDR",
  "IP-CIDR6",
  "SRC-IP-CIDR",
  "IP-SUFFIX",
  "SRC-IP-SUFFIX",
  "SRC-MAC",
  "SRC-PORT",
  "DST-PORT",
  "IN-PORT",
  "IN-TYPE",
  "IN-USER",
  "IN-NAME",
  "PROCESS-NAME",
  "PROCESS-PATH",
  "PROCESS-NAME-REGEX",
  "PROCESS-PATH-REGEX",
  "PROCESS-NAME-WILDCARD",
  "PROCESS-PATH-WILDCARD",
  "UID",
  "NETWORK",
  "DSCP",
  "SUB-RULE",
  "AND",
  "OR",
  "NOT",
  "REMATCH-NAME",
  "MATCH",
];

/** Outbounds that need no definition. */
export const BUILT_INS: readonly string[] = [
  "DIRECT",
  "REJECT",
  "REJECT-DROP",
  "PASS",
  "PASS-RULE",
  "COMPATIBLE",
];

export const GLOBAL = "GLOBAL";
