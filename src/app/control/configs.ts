import type { Config } from "#config/config.ts";
import { PORT_LISTENERS } from "#config/sections/general.ts";
import { TUN } from "#config/sections/tun.ts";
import type { ConfigsView, JsonValue, TunView } from "#core/control.ts";
import { camelCase } from "#core/fields.ts";
import type { LogLevel } from "#core/log.ts";
import type { IpPrefix } from "#core/session.ts";
import type { Inbound } from "#core/inbound.ts";
import { cidrText, type Cidr } from "#net/address/cidr.ts";

/** What may differ from the file while the program runs. */
export interface LiveSettings {
  readonly mode: Config["mode"];
  readonly logLevel: LogLevel;
  readonly unifiedDelay: boolean;
  /** The name of the running TUN's device; null: there is none. */
  readonly tunDevice: string | null;
}

/** The running settings: those of the configuration in force, with what a person switched and where ports really are. */
export function configsView(
  config: Config,
  { tunDevice, ...live }: LiveSettings,
  inbounds: readonly Inbound[],
): ConfigsView {
  const { general, geodata } = config;
  return {
    ...realPorts(inbounds),
    tun: tunView(config.tun, tunDevice),
    authentication: listOrNull(config.accounts.map(({ username }) => username)),
    skipAuthPrefixes: cidrsOrNull(config.skipAuthPrefixes),
    lanAllowedIps: cidrsOrNull(config.lanAllowedIps),
    lanDisallowedIps: cidrsOrNull(config.lanDisallowedIps),
    allowLan: general.allowLan,
    bindAddress: general.bindAddress,
    inboundTfo: general.inboundTfo,
    inboundMptcp: general.inboundMptcp,
    ...live,
    ipv6: general.ipv6,
    interfaceName: general.interfaceName,
    routingMark: general.routingMark,
    geoxUrl: {
      geoIp: geodata.geoxUrl.geoip,
      mmdb: geodata.geoxUrl.mmdb,
      asn: geodata.geoxUrl.asn,
      geoSite: geodata.geoxUrl.geosite,
    },
    geoAutoUpdate: geodata.geoAutoUpdate,
    geoUpdateInterval: geodata.geoUpdateInterval,
    geodataMode: geodata.geodataMode,
    geodataLoader: geodata.geodataLoader,
    geositeMatcher: geodata.geositeMatcher,
    tcpConcurrent: general.tcpConcurrent,
    findProcessMode: general.findProcessMode,
    sniffing: config.sniffer.enable,
    globalUa: general.globalUa,
    etagSupport: general.etagSupport,
    keepAliveIdle: general.keepAliveIdle,
    keepAliveInterval: general.keepAliveInterval,
    disableKeepAlive: general.disableKeepAlive,
  };
}

type Ports = Pick<ConfigsView, "port" | "socksPort" | "mixedPort" | "redirPort" | "tproxyPort">;

function realPorts(inbounds: readonly Inbound[]): Ports {
  const portOf = (name: string) => inbounds.find((inbound) => inbound.name === name)?.endpoints[0]?.port ?? 0;
  const ports = Object.fromEntries(PORT_LISTENERS.map(({ member, name }) => [member, portOf(name)]));
  return ports as unknown as Ports;
}

function listOrNull<T>(list: readonly T[]): readonly T[] | null {
  return list.length === 0 ? null : list;
}

function cidrsOrNull(list: readonly Cidr[]): readonly string[] | null {
  return listOrNull(list.map(cidrText));
}

const STACK_NAMES = { gvisor: "gVisor", system: "System", mixed: "Mixed" } as const;
const OWN_MEMBERS = new Set([
  "enable",
  "device",
  "stack",
  "dns-hijack",
  "auto-route",
  "auto-detect-interface",
  "file-descriptor",
]);

function tunView(tun: Config["tun"], running: string | null): TunView {
  const { device, stack, dnsHijack, autoRoute, autoDetectInterface, fileDescriptor } = tun;
  const values: Readonly<Record<string, unknown>> = { ...tun };
  const others = [...Object.keys(TUN), "inet4-address"].filter((key) => !OWN_MEMBERS.has(key));
  return {
    enable: running !== null, // what runs, not what was asked for
    device: running ?? device,
    stack: STACK_NAMES[stack],
    dnsHijack: dnsHijack.map(({ host, port }) => `${host}:${port}`),
    autoRoute,
    autoDetectInterface,
    fileDescriptor,
    more: Object.fromEntries(others.map((key) => [key, jsonOf(values[camelCase(key)])])),
  };
}

/** Networks and ranges become the text of the file; everything else in the block is JSON already. */
function jsonOf(value: unknown): JsonValue {
  if (Array.isArray(value)) return value.map(jsonOf);
  if (typeof value !== "object" || value === null) return value as JsonValue;
  if ("bytes" in value) return cidrText(value as Cidr);
  if ("ip" in value) return prefixText(value as IpPrefix);
  const { from, to } = value as { from: number; to: number };
  return `${from}:${to}`;
}

function prefixText({ ip, bits }: IpPrefix): string {
  return `${ip}/${bits}`;
}
