/** `PATCH /configs` as a function from one configuration to the next; nothing running is touched here. */
import type { ConfigsPatch } from "#core/control.ts";
import { ConfigError } from "#core/errors.ts";
import { camelCase, list } from "#core/fields.ts";
import type { SafeFiles } from "#core/files.ts";
import { cidr } from "#net/address/address-fields.ts";
import type { Cidr } from "#net/address/cidr.ts";
import * as z from "zod";
import type { Config } from "./config.ts";
import { Context, type Registries } from "./context.ts";
import { checkTun } from "./cross-checks.ts";
import { freezePlain } from "./freeze.ts";
import { maskIpv6 } from "./general-build.ts";
import { portListeners } from "./listeners.ts";
import { Report } from "./report.ts";
import { RuleSetNames } from "./rule-sets.ts";
import { GENERAL, PORT_LISTENERS } from "./sections/general.ts";
import { TUN, type TunKeys } from "./sections/tun.ts";

export interface PatchEnv {
  readonly registries: Registries;
  readonly files: Pick<SafeFiles, "resolve">;
}

const NOWHERE = { line: 0, column: 0 };

/**
 * The configuration with the fragment laid over it: absent keys keep their value, lists are replaced whole, an absent
 * `tun.enable` never switches the TUN off. The whole fragment is checked first; throws `ConfigError` naming the keys.
 */
export function patchConfig(config: Config, patch: ConfigsPatch, { registries, files }: PatchEnv): Config {
  const report = new Report(() => NOWHERE);
  const context = new Context(report, registries, files);
  const general = { ...config.general, ...patchedGeneral(patch, context) };
  const tun = patchedTun(config, patch, context);
  const lists = {
    skipAuthPrefixes: networks(patch.skipAuthPrefixes, "skip-auth-prefixes", context),
    lanAllowedIps: networks(patch.lanAllowedIps, "lan-allowed-ips", context),
    lanDisallowedIps: networks(patch.lanDisallowedIps, "lan-disallowed-ips", context),
  };
  const ports = portListeners(general, registries, (key, message) => {
    if (patch[PORT_LISTENERS.find((entry) => entry.key === key)?.member ?? "port"] !== undefined)
      report.error([key], message);
  });
  if (report.failed)
    throw new ConfigError(report.errors.map(({ path, message }) => `${path}: ${message}`).join("; "));

  const listed = config.listeners.filter(({ name }) => PORT_LISTENERS.every((entry) => entry.name !== name));
  const sniffing = config.written.sniffing && (patch.sniffing ?? config.sniffer.enable);
  return freezePlain({
    ...config,
    general,
    mode: patch.mode ?? config.mode,
    logLevel: patch.logLevel ?? config.logLevel,
    skipAuthPrefixes: lists.skipAuthPrefixes ?? config.skipAuthPrefixes,
    lanAllowedIps: lists.lanAllowedIps ?? config.lanAllowedIps,
    lanDisallowedIps: lists.lanDisallowedIps ?? config.lanDisallowedIps,
    listeners: [...ports, ...listed],
    sniffer: { ...config.sniffer, enable: sniffing },
    ...maskIpv6(general.ipv6, { ...config.written, tun }),
  });
}

const GENERAL_MEMBERS = [
  "port",
  "socks-port",
  "mixed-port",
  "redir-port",
  "tproxy-port",
  "allow-lan",
  "bind-address",
  "ipv6",
  "interface-name",
  "tcp-concurrent",
  "unified-delay",
  "find-process-mode",
] as const satisfies readonly (keyof typeof GENERAL)[];

function patchedGeneral(patch: ConfigsPatch, context: Context): Partial<Config["general"]> {
  const given = new Map<string, unknown>(Object.entries(patch));
  const written = GENERAL_MEMBERS.flatMap((key) => {
    const value = given.get(camelCase(key));
    return value === undefined ? [] : [[key, value] as const];
  });
  return readGiven(GENERAL, Object.fromEntries(written), [], context);
}

function patchedTun(config: Config, { tun: fragment }: ConfigsPatch, context: Context): TunKeys {
  const { tun } = config.written;
  if (fragment === undefined) return tun;
  const merged: TunKeys = { ...tun, ...(readGiven(TUN, fragment, ["tun"], context) as Partial<TunKeys>) };
  const behaviors = new Map([...config.ruleProviders].map(([name, { behavior }]) => [name, behavior]));
  if (!context.report.failed) checkTun(context, merged, new RuleSetNames(behaviors, context.report));
  return merged;
}

/** Only the given keys, read by their own fields, in camelCase; null is absence, an unknown key is ignored. */
function readGiven(
  shape: z.ZodRawShape,
  given: Readonly<Record<string, unknown>>,
  path: readonly string[],
  context: Context,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(given).filter(([key, value]) => value !== null && Object.hasOwn(shape, key));
  const wanted = z.object(Object.fromEntries(entries.map(([key]) => [key, shape[key] as z.ZodType])));
  const read = context.read(wanted, Object.fromEntries(entries), path) ?? {};
  return Object.fromEntries(Object.entries(read).map(([key, value]) => [camelCase(key), value]));
}

function networks(
  items: readonly string[] | undefined,
  key: string,
  context: Context,
): readonly Cidr[] | null {
  return items === undefined ? null : context.read(list(cidr()), items, [key]);
}
