/** What PATCH /configs accepts (controller-api.md §5.2, kernel-direct.md §1.3); every other key is ignored. */
import * as z from "zod";
import type { ConfigsPatch } from "#core/control.ts";
import { LOG_LEVELS } from "#core/log.ts";
import { cidr, jsonObject, port, word } from "#api/shapes.ts";

const DEFAULT_LEARNED = 4096;
const MAX_LEARNED = 65_536;

const count = () => z.int().min(0);
const mark = () => z.int().min(0).max(0xffff_ffff);
const names = () => z.array(z.string());

const TUN_BOOLEANS = [
  "enable",
  "auto-route",
  "auto-detect-interface",
  "gso",
  "auto-redirect",
  "strict-route",
  "endpoint-independent-nat",
  "disable-icmp-forwarding",
  "recvmsgx",
  "sendmsgx",
  "kernel-direct",
  "kernel-direct-ebpf",
  "kernel-direct-ebpf-proxy",
  "kernel-direct-ebpf-proxy-redirect",
  "kernel-direct-ebpf-required",
];
const TUN_COUNTS = [
  "mtu",
  "gso-max-size",
  "iproute2-table-index",
  "iproute2-rule-index",
  "auto-redirect-iproute2-fallback-rule-index",
  "udp-timeout",
  "icmp-timeout",
  "file-descriptor",
  "kernel-direct-ebpf-max-entries",
  "kernel-direct-ebpf-flow-entries",
];
const TUN_MARKS = [
  "auto-redirect-input-mark",
  "auto-redirect-output-mark",
  "kernel-direct-ebpf-mark",
  "kernel-direct-ebpf-proxy-mark",
];
const TUN_PREFIXES = [
  "inet4-address",
  "inet6-address",
  "loopback-address",
  "route-address",
  "route-exclude-address",
  "inet4-route-address",
  "inet6-route-address",
  "inet4-route-exclude-address",
  "inet6-route-exclude-address",
  "kernel-direct-ebpf-direct-prefixes",
  "kernel-direct-ebpf-proxy-prefixes",
];
const TUN_NAMES = [
  "dns-hijack",
  "route-address-set",
  "route-exclude-address-set",
  "include-interface",
  "exclude-interface",
  "include-uid-range",
  "exclude-uid-range",
  "include-package",
  "exclude-package",
  "include-mac-address",
  "exclude-mac-address",
  "exclude-src-port-range",
  "exclude-dst-port-range",
  "kernel-direct-ebpf-interfaces",
];
const TUN_NUMBERS = [
  "include-uid",
  "exclude-uid",
  "include-android-user",
  "exclude-src-port",
  "exclude-dst-port",
];

/** The members whose values are the same in a PATCH and in a GET. */
export const TUN_MEMBERS: Readonly<Record<string, z.ZodType>> = {
  device: z.string(),
  "on-exit": z.enum(["open", "closed"]),
  ...all(TUN_BOOLEANS, z.boolean()),
  ...all(TUN_COUNTS, count()),
  ...all(TUN_MARKS, mark()),
  ...all(TUN_PREFIXES, z.array(cidr())),
  ...all(TUN_NAMES, names()),
  ...all(TUN_NUMBERS, z.array(count())),
};

const tunShape: z.ZodRawShape = {
  ...TUN_MEMBERS,
  stack: word(["gVisor", "System", "Mixed"]),
  "kernel-direct-max-entries": z
    .int()
    .min(0)
    .max(MAX_LEARNED)
    .transform((value) => (value === 0 ? DEFAULT_LEARNED : value)),
};

const tun = jsonObject(
  Object.fromEntries(Object.entries(tunShape).map(([key, type]) => [key, z.optional(type)])),
);

export const configsPatch = jsonObject({
  mode: word(["rule", "global", "direct"]).optional(),
  "log-level": word(LOG_LEVELS).optional(),
  ipv6: z.boolean().optional(),
  "interface-name": z.string().optional(),
  "tcp-concurrent": z.boolean().optional(),
  "unified-delay": z.boolean().optional().catch(undefined), // dashboards send it; nothing wrong with it may be 400
  sniffing: z.boolean().optional(),
  "find-process-mode": word(["always", "strict", "off"]).optional(),
  port: port().optional(),
  "socks-port": port().optional(),
  "redir-port": port().optional(),
  "tproxy-port": port().optional(),
  "mixed-port": port().optional(),
  "allow-lan": z.boolean().optional(),
  "bind-address": z.string().optional(),
  "skip-auth-prefixes": z.array(cidr()).optional(),
  "lan-allowed-ips": z.array(cidr()).optional(),
  "lan-disallowed-ips": z.array(cidr()).optional(),
  tun: tun.optional(),
}).transform((given): ConfigsPatch => {
  const set = Object.entries(given).flatMap(([key, value]) =>
    value === undefined ? [] : [[camel(key), value] as const],
  );
  return Object.fromEntries(set);
});

/** `mixed-port` → `mixedPort`. */
function camel(key: string): string {
  return key.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function all(keys: readonly string[], type: z.ZodType): Record<string, z.ZodType> {
  return Object.fromEntries(keys.map((key) => [key, type]));
}
