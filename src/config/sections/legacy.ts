/** Keys of older generations: accepted, typed, and but for one without effect; those that ask for something are warned about. */
import { block, flag, int, list, mapOf, text } from "#core/fields.ts";

export const LEGACY = {
  "ss-config": text().default(""),
  "vmess-config": text().default(""),
  "global-client-fingerprint": text().default(""),
  "clash-for-android": block({
    "append-system-dns": flag().default(false),
    "ui-subtitle-pattern": text().default(""),
  }).prefault({}),
  "tuic-server": block({
    enable: flag().default(false),
    listen: text().default(""),
    token: list(text()).default([]),
    users: mapOf(text()).default({}),
    certificate: text().default(""),
    "private-key": text().default(""),
    "congestion-controller": text().default(""),
    "max-idle-time": int(0).default(15_000),
    "authentication-timeout": int(0).default(1000),
    alpn: list(text()).default(["h3"]),
    "max-udp-relay-packet-size": int(0).default(1500),
    cwnd: int(0).default(0),
  }).prefault({}),
  iptables: block({
    enable: flag().default(false),
    "inbound-interface": text().default("lo"),
    bypass: list(text()).default([]),
    "dns-redirect": flag().default(true),
  }).prefault({}),
};

type Legacy = {
  readonly ssConfig: string;
  readonly vmessConfig: string;
  readonly globalClientFingerprint: string;
  readonly tuicServer: { readonly enable: boolean };
  readonly iptables: { readonly enable: boolean };
};

/** What is asked for and not done, by key. */
export function legacyWarnings(keys: Legacy): readonly (readonly [key: string, message: string])[] {
  const asked: readonly (readonly [boolean, string, string])[] = [
    [keys.ssConfig !== "", "ss-config", "is not supported; write a listener of type shadowsocks"],
    [keys.vmessConfig !== "", "vmess-config", "is not supported; write a listener of type vmess"],
    [
      keys.globalClientFingerprint !== "",
      "global-client-fingerprint",
      "was removed by other programs; it is what proxies without client-fingerprint show: set it on each proxy",
    ],
    [keys.tuicServer.enable, "tuic-server", "is not supported; write a listener of type tuic"],
    [keys.iptables.enable, "iptables", "is not supported; use tun with auto-redirect"],
  ];
  return asked.filter(([is]) => is).map(([, key, message]) => [key, `${key} ${message}`]);
}
