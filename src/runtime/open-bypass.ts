/** kernel-direct of a TUN. */
import { isTableThere, localNetworks } from "#capture/index.ts";
import type { Config } from "#config/config.ts";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { Bypass, type BypassContext, type BypassEnv } from "#kernel-direct/bypass.ts";
import { cleanUpClassifier } from "#kernel-direct/clean-up.ts";
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

/**
 * Takes away filters of a classifier that was killed: without TCX they stay, and where they redirect, what they call PROXY is
 * lost. Never throws: without the right to there is nothing of ours.
 */
export function clearStaleBypass(log: Log): void {
  try {
    if (!isTableThere()) cleanUpClassifier();
  } catch (error) {
    log.debug(`kernel-direct: filters that a program before left: ${messageOf(error)}`);
  }
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
