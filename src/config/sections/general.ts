/**
 * General keys (top level). The ports become listeners; `mode`, `log-level` and access keys are fields of `Config`
 * itself.
 */
import {
  choice,
  flag,
  int,
  leftOut,
  list,
  listenPort,
  maybe,
  scalar,
  text,
  Fault,
  show,
} from "#core/fields.ts";
import { LOG_LEVELS } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { cidr } from "#net/address/address-fields.ts";
import { cidrOf } from "#net/address/cidr.ts";
import { ANY_V6, LOOPBACK_V4, parseIp } from "#net/address/ip.ts";

/** `*` or one address, canonical. */
const bindAddress = () =>
  scalar({ type: "string" }, (source, raw) => {
    if (source === "*" || source === "") return "*";
    return parseIp(source) ?? new Fault(`expected * or an IP address, got ${show(raw)}`);
  });

const EVERYWHERE = ["0.0.0.0/0", "::/0"].map(cidrOf);

/** SO_MARK and friends: 32 bits. */
export const mark = () => int(0, 0xffff_ffff);

export const GENERAL = {
  port: listenPort().default(0),
  "socks-port": listenPort().default(0),
  "mixed-port": listenPort().default(0),
  "redir-port": listenPort().default(0),
  "tproxy-port": listenPort().default(0),
  "allow-lan": flag().default(false),
  "bind-address": bindAddress().default("*"),
  authentication: list(text()).default([]),
  "skip-auth-prefixes": list(leftOut(cidr())).default([]),
  "lan-allowed-ips": list(cidr()).default(EVERYWHERE),
  "lan-disallowed-ips": list(cidr()).default([]),
  "allow-loopback-from-lan": flag().default(false),
  mode: choice(["rule", "global", "direct"], { fold: true }).default("rule"),
  "log-level": choice(LOG_LEVELS, { fold: true }).default("info"),
  ipv6: flag().default(true),
  "interface-name": text().default(""),
  "routing-mark": leftOut(mark()).default(0),
  "unified-delay": flag().default(false),
  "tcp-concurrent": flag().default(false),
  "find-process-mode": choice(["always", "strict", "off"], { fold: true }).default("strict"),
  "keep-alive-idle": leftOut(int(0, 86_400)).default(0),
  "keep-alive-interval": leftOut(int(0, 86_400)).default(0),
  "disable-keep-alive": flag().default(false),
  "inbound-tfo": flag().default(false),
  "inbound-mptcp": flag().default(false),
  "global-ua": maybe(text()),
  relay: choice(["auto", "portable"], { fold: true }).default("auto"),
  workers: maybe(int(1, 64)),
  "etag-support": flag().default(true),
};

/** The keys of which a top-level port listens, the protocol that does, and the name that it has. */
export const PORT_LISTENERS = [
  { key: "port", member: "port", type: "http", name: "DEFAULT-HTTP" },
  { key: "socks-port", member: "socksPort", type: "socks", name: "DEFAULT-SOCKS" },
  { key: "mixed-port", member: "mixedPort", type: "mixed", name: "DEFAULT-MIXED" },
  { key: "redir-port", member: "redirPort", type: "redir", name: "DEFAULT-REDIR" },
  { key: "tproxy-port", member: "tproxyPort", type: "tproxy", name: "DEFAULT-TPROXY" },
] as const;

/** Where the top-level ports listen. `::` is every family. */
export function bindHosts(allowLan: boolean, address: string): readonly Ip[] {
  if (!allowLan) return [LOOPBACK_V4];
  return [address === "*" ? ANY_V6 : (parseIp(address) ?? LOOPBACK_V4)];
}
