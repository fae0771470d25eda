/** The TUN device, with the keys of kernel-direct. The same shape serves a `tun` entry of `listeners`. */
import {
  block,
  choice,
  Fault,
  flag,
  int,
  leftOut,
  list,
  name,
  scalar,
  show,
  text,
  unsetAs,
} from "#core/fields.ts";
import { cidr, ip, parseHostPort, prefix } from "#net/address/address-fields.ts";
import { ANY_V4 } from "#net/address/ip.ts";

/** The inbound name of the block `tun`. */
export const TUN_NAME = "DEFAULT-TUN";
const KERNEL_DIRECT_ENTRIES = 4096;
const KERNEL_DIRECT_MOST_ENTRIES = 65_536;

/** 0 means the default and is written as it. */
const learnedEntries = () =>
  scalar({ type: "integer", minimum: 0, maximum: KERNEL_DIRECT_MOST_ENTRIES }, (source, raw) => {
    const value = Number(source);
    if (!Number.isInteger(value) || value < 0 || source === "")
      return new Fault(`expected an integer from 0 to ${KERNEL_DIRECT_MOST_ENTRIES}, got ${show(raw)}`);
    if (value <= KERNEL_DIRECT_MOST_ENTRIES) return value === 0 ? KERNEL_DIRECT_ENTRIES : value;
    return new Fault(
      `kernel-direct-max-entries must not be above ${KERNEL_DIRECT_MOST_ENTRIES}, got ${value}`,
    );
  });

/** Of a packet's mark. 0 is no mark, which every packet has: it means the default. */
const bits = (fallback: number) => unsetAs(int(1, 0xffff_ffff), fallback).default(fallback);
const mapEntries = () => unsetAs(int(1, 16_777_216), 65_536).default(65_536);

/** `1000:1999`, both ends inside. */
const numberRange = (most: number) =>
  scalar({ type: "string" }, (source, raw) => {
    const [, first, second] = /^(\d{1,10}):(\d{1,10})$/.exec(source.trim()) ?? [];
    const from = Number(first);
    const to = Number(second);
    if (first !== undefined && from <= to && to <= most) return { from, to };
    return new Fault(`expected a range such as 1000:1999, up to ${most}, got ${show(raw)}`);
  });

/** `any` is `any:53`. */
const DNS_PORT = 53;

/** `any:53`, `host:port`, with or without `udp://` or `tcp://` in front; 0.0.0.0 is any destination. */
const hijack = () =>
  scalar({ type: "string" }, (source, raw) => {
    const bare = source.replace(/^(udp|tcp):\/\//i, "");
    if (/^any$/i.test(bare)) return { host: ANY_V4 as string, port: DNS_PORT };
    const parsed = parseHostPort(/^any:/i.test(bare) ? bare.slice(3) : bare);
    if (parsed === null) return new Fault(`expected any:53 or address:port, got ${show(raw)}`);
    const host: string = parsed.host === "" ? ANY_V4 : parsed.host;
    return { ...parsed, host };
  });

const UIDS = 0xffff_fffe;
const PORTS = 65_535;

export const TUN = {
  enable: flag().default(false),
  stack: choice(["gvisor", "system", "mixed"], { fold: true }).default("gvisor"),
  device: text().default(""),
  "auto-route": flag().default(true),
  "auto-redirect": flag().default(false),
  "auto-detect-interface": flag().default(true),
  "dns-hijack": list(leftOut(hijack())).default([{ host: "0.0.0.0", port: 53 }]),
  mtu: leftOut(int(0, 65_535)).default(9000),
  gso: flag().default(false),
  "gso-max-size": int(0, 1_048_576).default(65_536),
  "inet6-address": list(prefix(6)).prefault(["fdfe:dcba:9876::1/126"]),
  "strict-route": flag().default(false),
  "on-exit": choice(["open", "closed"]).default("open"),
  "route-address": list(cidr()).default([]),
  "route-exclude-address": list(cidr()).default([]),
  "route-address-set": list(name()).default([]),
  "route-exclude-address-set": list(name()).default([]),
  "inet4-route-address": list(cidr()).default([]),
  "inet6-route-address": list(cidr()).default([]),
  "inet4-route-exclude-address": list(cidr()).default([]),
  "inet6-route-exclude-address": list(cidr()).default([]),
  "include-interface": list(name()).default([]),
  "exclude-interface": list(name()).default([]),
  "include-uid": list(int(0, UIDS)).default([]),
  "include-uid-range": list(numberRange(UIDS)).default([]),
  "exclude-uid": list(int(0, UIDS)).default([]),
  "exclude-uid-range": list(numberRange(UIDS)).default([]),
  "exclude-src-port": list(int(1, PORTS)).default([]),
  "exclude-src-port-range": list(numberRange(PORTS)).default([]),
  "exclude-dst-port": list(int(1, PORTS)).default([]),
  "exclude-dst-port-range": list(numberRange(PORTS)).default([]),
  "include-android-user": list(int(0)).default([]),
  "include-package": list(name()).default([]),
  "exclude-package": list(name()).default([]),
  "include-mac-address": list(name()).default([]),
  "exclude-mac-address": list(name()).default([]),
  "endpoint-independent-nat": flag().default(false),
  "udp-timeout": unsetAs(int(1, 86_400), 300).default(300),
  "icmp-timeout": unsetAs(int(1, 86_400), 10).default(10),
  "disable-icmp-forwarding": flag().default(false),
  "loopback-address": list(ip()).default([]),
  "iproute2-table-index": unsetAs(int(1, 0xffff_ffff), 2022).default(2022),
  "iproute2-rule-index": unsetAs(int(1, 32_765), 9000).default(9000),
  "auto-redirect-input-mark": bits(0x2023),
  "auto-redirect-output-mark": bits(0x2024),
  "auto-redirect-iproute2-fallback-rule-index": unsetAs(int(1, 0xffff_ffff), 32_768).default(32_768),
  "file-descriptor": int(0, 0x7fff_ffff).default(0),
  recvmsgx: flag().default(true),
  sendmsgx: flag().default(false),
  "kernel-direct": flag().default(false),
  "kernel-direct-max-entries": learnedEntries().default(KERNEL_DIRECT_ENTRIES),
  "kernel-direct-ebpf": flag().default(false),
  "kernel-direct-ebpf-interfaces": list(name()).default([]),
  "kernel-direct-ebpf-mark": bits(0x4000_0000),
  "kernel-direct-ebpf-max-entries": mapEntries(),
  "kernel-direct-ebpf-proxy": flag().default(false),
  "kernel-direct-ebpf-proxy-redirect": flag().default(false),
  "kernel-direct-ebpf-proxy-mark": bits(0x2000_0000),
  "kernel-direct-ebpf-flow-entries": mapEntries(),
  "kernel-direct-ebpf-direct-prefixes": list(cidr()).default([]),
  "kernel-direct-ebpf-proxy-prefixes": list(cidr()).default([]),
  "kernel-direct-ebpf-required": flag().default(false),
};

export const tun = block(TUN);
export type TunKeys = ReturnType<typeof tun.parse>;

type Check = readonly [broken: (tun: TunKeys) => boolean, key: string, message: string];

const needs = (key: string, other: string): string => `${key} requires ${other}`;
const overlap = (left: number, right: number) => (left & right) !== 0;

/** What the keys demand of each other, also while the TUN is off. The order is that in which a PATCH reports them. */
const CHECKS: readonly Check[] = [
  [
    (t) => t.kernelDirect && !(t.autoRoute && t.autoRedirect),
    "kernel-direct",
    needs("kernel-direct", "auto-route and auto-redirect"),
  ],
  [
    (t) => t.kernelDirectEbpf && !t.kernelDirect,
    "kernel-direct-ebpf",
    needs("kernel-direct-ebpf", "kernel-direct"),
  ],
  [
    (t) => t.kernelDirectEbpfRequired && !t.kernelDirectEbpf,
    "kernel-direct-ebpf-required",
    needs("kernel-direct-ebpf-required", "kernel-direct-ebpf"),
  ],
  [
    (t) => t.kernelDirectEbpf && t.kernelDirectEbpfInterfaces.length === 0,
    "kernel-direct-ebpf",
    needs("kernel-direct-ebpf", "at least one of kernel-direct-ebpf-interfaces"),
  ],
  [
    (t) => t.kernelDirectEbpfProxy && !t.kernelDirectEbpf,
    "kernel-direct-ebpf-proxy",
    needs("kernel-direct-ebpf-proxy", "kernel-direct-ebpf"),
  ],
  [
    (t) => t.kernelDirectEbpfProxyRedirect && !t.kernelDirectEbpfProxy,
    "kernel-direct-ebpf-proxy-redirect",
    needs("kernel-direct-ebpf-proxy-redirect", "kernel-direct-ebpf-proxy"),
  ],
  [
    (t) => t.kernelDirectEbpfDirectPrefixes.length > 0 && !t.kernelDirectEbpf,
    "kernel-direct-ebpf-direct-prefixes",
    needs("kernel-direct-ebpf-direct-prefixes", "kernel-direct-ebpf"),
  ],
  [
    (t) => t.kernelDirectEbpfProxyPrefixes.length > 0 && !t.kernelDirectEbpfProxy,
    "kernel-direct-ebpf-proxy-prefixes",
    needs("kernel-direct-ebpf-proxy-prefixes", "kernel-direct-ebpf-proxy"),
  ],
  [
    (t) =>
      t.kernelDirectEbpf &&
      overlap(t.kernelDirectEbpfMark, t.autoRedirectInputMark | t.autoRedirectOutputMark),
    "kernel-direct-ebpf-mark",
    "kernel-direct-ebpf-mark must not share a bit with auto-redirect-input-mark or auto-redirect-output-mark",
  ],
  [
    (t) =>
      t.kernelDirectEbpfProxy &&
      overlap(
        t.kernelDirectEbpfProxyMark,
        t.kernelDirectEbpfMark | t.autoRedirectInputMark | t.autoRedirectOutputMark,
      ),
    "kernel-direct-ebpf-proxy-mark",
    "kernel-direct-ebpf-proxy-mark must not share a bit with kernel-direct-ebpf-mark or the auto-redirect marks",
  ],
  [(t) => t.autoRedirect && !t.autoRoute, "auto-redirect", needs("auto-redirect", "auto-route")],
  [(t) => t.onExit === "closed" && !t.autoRoute, "on-exit", needs("on-exit: closed", "auto-route")],
  [
    (t) => t.includeInterface.length > 0 && t.excludeInterface.length > 0,
    "exclude-interface",
    "include-interface and exclude-interface exclude each other",
  ],
];

export interface TunFault {
  readonly key: string;
  readonly message: string;
}

export function tunFaults(value: TunKeys): readonly TunFault[] {
  return CHECKS.filter(([broken]) => broken(value)).map(([, key, message]) => ({ key, message }));
}
