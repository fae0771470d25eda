/** From the general keys to the values that the program reads, and what `ipv6: false` switches off elsewhere. */
import { interfaceNameFault } from "#core/fields.ts";
import type { Account } from "#core/inbound.ts";
import type { z } from "zod";
import type { Config } from "./config.ts";
import type { Context } from "./context.ts";
import type { FLAT, Sections, TunConfig } from "./sections/index.ts";

type FlatGeneral = z.output<typeof FLAT.general>;

type Lifted = Pick<
  Config,
  "general" | "mode" | "logLevel" | "accounts" | "skipAuthPrefixes" | "lanAllowedIps" | "lanDisallowedIps"
>;

export function liftGeneral(keys: FlatGeneral, context: Context, userAgent: string): Lifted {
  const { mode, logLevel, authentication, skipAuthPrefixes, lanAllowedIps, lanDisallowedIps, ...rest } = keys;
  const keepAlive = {
    disabled: rest.disableKeepAlive,
    idleMs: rest.keepAliveIdle * 1000,
    intervalMs: rest.keepAliveInterval * 1000,
  };
  const fault = interfaceNameFault(rest.interfaceName);
  if (fault !== null) context.report.warning(["interface-name"], `${fault}; nothing can be dialled by it`);
  const globalUa = rest.globalUa ?? userAgent;
  return {
    general: { ...rest, globalUa, keepAlive },
    mode,
    logLevel,
    accounts: readAccounts(authentication, context),
    skipAuthPrefixes,
    lanAllowedIps,
    lanDisallowedIps,
  };
}

function readAccounts(items: readonly string[], { report }: Context): readonly Account[] {
  const accounts: Account[] = [];
  for (const [at, item] of items.entries()) {
    const colon = item.indexOf(":");
    if (colon >= 0) accounts.push({ username: item.slice(0, colon), password: item.slice(colon + 1) });
    else report.warning(["authentication", at], "expected user:password; the item is left out");
  }
  return accounts;
}

/** `dns` and `tun` under the general keys. */
export function maskIpv6(
  ipv6: boolean,
  written: Sections["written"],
): Pick<Sections, "dns" | "tun" | "written"> {
  const { dns, tun } = written;
  const address = dns.fakeIpRange?.ip;
  const masked: TunConfig = {
    ...tun,
    inet4Address: address === undefined ? [] : [{ ip: address, bits: 30 }],
    inet6Address: ipv6 ? tun.inet6Address : [],
  };
  return {
    dns: ipv6 ? dns : { ...dns, ipv6: false, fakeIpRange6: null },
    tun: masked,
    written,
  };
}
