/** kernel-direct of a TUN. */
import { localNetworks } from "#capture/index.ts";
import type { Config } from "#config/config.ts";
import { Bypass, type BypassContext, type BypassEnv } from "#kernel-direct/bypass.ts";
import { ownAddresses } from "#net/address/own-address.ts";
import type { TunSettings } from "#tun/settings.ts";

/** Null: the TUN does without. Throws `ConfigError`. */
export async function openBypass(
  { bypass, ruleList, target }: TunSettings,
  context: Omit<BypassContext, "inbound">,
  env: Pick<BypassEnv, "learning" | "log">,
): Promise<Bypass | null> {
  if (bypass === null) return null;
  const around = { ownAddresses, networks: localNetworks };
  return Bypass.open(bypass, { ...context, inbound: { ruleList, target } }, { ...env, ...around });
}

/** Learning needs to see the clients' DNS questions. */
export function deafLearning({ dns }: Config, wanted: readonly TunSettings[]): readonly string[] {
  return wanted
    .filter(({ bypass }) => bypass !== null)
    .flatMap(({ dnsHijack }) => {
      const only = "kernel-direct learns from live flows only";
      if (!dns.enable) return [`dns.enable: is false, ${only}`];
      if (dns.listen === null && dnsHijack.length === 0)
        return [`tun.dns-hijack: is empty and dns.listen is not set, ${only}`];
      return [];
    });
}
