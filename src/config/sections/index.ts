/** The typed sections of the file, one file each beside this one. */
import { acme } from "./acme.ts";
import { block, list, mapOf, text } from "#core/fields.ts";
import type { DnsOptions, HostEntry } from "#core/dns-options.ts";
import type { IpPrefix } from "#core/session.ts";
import * as z from "zod";
import type { SnifferOptions } from "#config/sniffer-build.ts";
import { tunnelItem } from "#config/tunnels.ts";
import { CONTROLLER } from "./controller.ts";
import { dns } from "./dns.ts";
import { GENERAL } from "./general.ts";
import { GEODATA } from "./geodata.ts";
import { hosts } from "./hosts.ts";
import { LEGACY } from "./legacy.ts";
import { proxyProvider } from "./proxy-providers.ts";
import { ruleProvider } from "./rule-providers.ts";
import { experimental, ntp, profile } from "./small.ts";
import { sniffer } from "./sniffer.ts";
import { svc } from "./svc.ts";
import { tls } from "./tls.ts";
import { trafficControl } from "./traffic-control.ts";
import { tun, type TunKeys } from "./tun.ts";
import { update } from "./update.ts";

/** Keys that are scalars or lists at the top level. */
export const FLAT = {
  general: block(GENERAL),
  controller: block(CONTROLLER),
  geodata: block(GEODATA),
  legacy: block(LEGACY),
} as const;

/** Keys that hold a map of their own with fixed keys. */
export const BLOCKS = { tls, acme, profile, ntp, experimental, dns, sniffer, tun, update, svc } as const;

const anyItem = z.looseObject({});

/** Every top-level key: the order is that of the manual. */
export const TOP_LEVEL = {
  ...GENERAL,
  ...CONTROLLER,
  ...GEODATA,
  ...LEGACY,
  ...BLOCKS,
  hosts,
  "traffic-control": trafficControl,
  "proxy-providers": mapOf(proxyProvider),
  "rule-providers": mapOf(ruleProvider),
  listeners: z.array(anyItem),
  tunnels: z.array(tunnelItem),
  proxies: z.array(anyItem),
  "proxy-groups": z.array(anyItem),
  rules: z.array(text()),
  "sub-rules": mapOf(list(text())),
};

type Keys<S extends z.ZodType> = Readonly<z.output<S>>;

type General = Keys<typeof FLAT.general>;

export type ProxyProviderConfig = Keys<typeof proxyProvider> & { readonly name: string };
export type RuleProviderConfig = Keys<typeof ruleProvider> & { readonly name: string };
export type TrafficControlConfig = Keys<typeof trafficControl>;

/** As the file says, with the addresses that are not a user's to choose. */
export interface TunConfig extends Readonly<TunKeys> {
  /** The fake-IP address with /30. */
  readonly inet4Address: readonly IpPrefix[];
}

export interface Sections {
  readonly general: Omit<
    General,
    | "mode"
    | "logLevel"
    | "authentication"
    | "skipAuthPrefixes"
    | "lanAllowedIps"
    | "lanDisallowedIps"
    | "globalUa"
  > & {
    readonly globalUa: string;
    /** `keep-alive-*` in the unit of sockets. */
    readonly keepAlive: { readonly disabled: boolean; readonly idleMs: number; readonly intervalMs: number };
  };
  readonly controller: Keys<typeof FLAT.controller> & {
    /** The file itself says `allow-origins: ["*"]`; the same by default does not open a Controller without a secret. */
    readonly saysEveryOrigin: boolean;
  };
  readonly geodata: Omit<Keys<typeof FLAT.geodata>, "geodataMode"> & { readonly geodataMode: boolean };
  readonly legacy: Keys<typeof FLAT.legacy>;
  readonly tls: Keys<typeof tls>;
  readonly profile: Keys<typeof profile>;
  readonly ntp: Keys<typeof ntp>;
  readonly experimental: Keys<typeof experimental>;
  /** In file order, `localhost` included. */
  readonly hosts: readonly HostEntry[];
  readonly dns: DnsOptions;
  readonly sniffer: SnifferOptions;
  readonly tun: TunConfig;
  /** What the file says before the general `ipv6` and a PATCH of `sniffing` act on it, so that both can be taken back. */
  readonly written: { readonly dns: DnsOptions; readonly tun: TunKeys; readonly sniffing: boolean };
  /** Null: the block is absent, and no certificate is fetched. */
  readonly acme: Keys<typeof acme> | null;
  /** Null: the block is absent, and the program does not update itself. */
  readonly update: Keys<typeof update> | null;
  /** Null: the manager of users is off. */
  readonly svc: Keys<typeof svc> | null;
  /** Null: the block is absent. */
  readonly trafficControl: TrafficControlConfig | null;
  readonly proxyProviders: ReadonlyMap<string, ProxyProviderConfig>;
  readonly ruleProviders: ReadonlyMap<string, RuleProviderConfig>;
}
