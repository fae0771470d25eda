/** The running settings as GET /configs shows them (controller-api.md §5.1). */
import * as z from "zod";
import { LOG_LEVELS } from "#core/log.ts";
import { amount, portNumber, texts } from "#api/answer-shapes.ts";
import { TUN_MEMBERS } from "./configs-patch.ts";

/** Keys of the block beyond these are left out while they are zero, false, "" or an empty list. */
const tun = z.object({
  ...Object.fromEntries(
    Object.entries(TUN_MEMBERS).map(([key, type]): [string, z.ZodType] => [key, type.optional()]),
  ),
  enable: z.boolean(),
  device: z.string(),
  stack: z.enum(["gVisor", "System", "Mixed"]),
  "dns-hijack": texts(),
  "auto-route": z.boolean(),
  "auto-detect-interface": z.boolean(),
  "file-descriptor": amount(),
  "kernel-direct-max-entries": z.int().min(1).max(65_536).optional(),
});

const tuicServer = z.object({
  enable: z.boolean(),
  listen: z.string(),
  certificate: z.string(),
  "private-key": z.literal(""),
  "ech-key": z.literal(""),
});

const listOrNull = () => texts().nullable();

export const configsShape = z
  .object({
    port: portNumber(),
    "socks-port": portNumber(),
    "redir-port": portNumber(),
    "tproxy-port": portNumber(),
    "mixed-port": portNumber(),
    tun,
    "tuic-server": tuicServer,
    "ss-config": z.literal(""),
    "vmess-config": z.literal(""),
    authentication: listOrNull().describe("Names only"),
    "skip-auth-prefixes": listOrNull(),
    "lan-allowed-ips": listOrNull(),
    "lan-disallowed-ips": listOrNull(),
    "allow-lan": z.boolean(),
    "bind-address": z.string(),
    "inbound-tfo": z.boolean(),
    "inbound-mptcp": z.boolean(),
    mode: z.enum(["rule", "global", "direct"]),
    "unified-delay": z.boolean(),
    "log-level": z.enum(LOG_LEVELS),
    ipv6: z.boolean(),
    "interface-name": z.string(),
    "routing-mark": amount(),
    "geox-url": z.object({
      "geo-ip": z.string(),
      mmdb: z.string(),
      asn: z.string(),
      "geo-site": z.string(),
    }),
    "geo-auto-update": z.boolean(),
    "geo-update-interval": amount().describe("Hours"),
    "geodata-mode": z.boolean(),
    "geodata-loader": z.string(),
    "geosite-matcher": z.string(),
    "tcp-concurrent": z.boolean(),
    "find-process-mode": z.enum(["always", "strict", "off"]),
    sniffing: z.boolean(),
    "global-ua": z.string(),
    "etag-support": z.boolean(),
    "keep-alive-idle": z.int().describe("Seconds"),
    "keep-alive-interval": z.int().describe("Seconds"),
    "disable-keep-alive": z.boolean(),
  })
  .meta({ id: "Configs" });
