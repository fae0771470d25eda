/** What this runtime's rules, groups and nodes prove about destinations, for kernel-direct. */
import type { Config } from "#config/config.ts";
import { isGroup, type Outbound } from "#core/outbound.ts";
import type { Decision } from "#core/router.ts";
import type { DirectClassifier } from "#kernel-direct/direct-classifier.ts";
import { openLearnable } from "#kernel-direct/learnable.ts";
import { parseCidr } from "#net/address/cidr.ts";
import type { RuleRouter } from "#router/rule-router.ts";
import type { Outbounds } from "./outbounds.ts";

/** Groups within groups; deeper ones prove nothing. */
const MOST_GROUPS = 16;

export interface DirectClassifierEnv {
  readonly config: Config;
  readonly router: RuleRouter;
  readonly outbounds: Outbounds;
  readonly mode: () => string;
}

export function openDirectClassifier({
  config,
  router,
  outbounds,
  mode,
}: DirectClassifierEnv): DirectClassifier {
  const isDirect = directTest(config, outbounds);
  const groups = [...outbounds.all.values()].filter(isGroup);
  return {
    classify: (host, ip, inbound) => router.proveDirect({ host, ip, inbound }, isDirect),
    isLearnable: openLearnable(fakeRanges(config)),
    isDirect: ({ outbound, groups: picked }: Decision) =>
      isDirect(outbound) && picked.every(({ spreads }) => spreads !== true),
    signature: () => [mode(), router.revision, ...groups.map((group) => (isDirect(group) ? 1 : 0))].join(),
  };
}

export function fakeRanges({ dns: { fakeIpRange, fakeIpRange6 } }: Config) {
  return [fakeIpRange, fakeIpRange6].flatMap((range) =>
    range === null ? [] : (parseCidr(`${range.ip}/${range.bits}`) ?? []),
  );
}

/**
 * Would the kernel send it the same way? Not where DIRECT has a device, a mark, a family or a resolver of its own; nor
 * through a node of a provider, whose settings are not looked at.
 */
function directTest({ general }: Config, { all, configOf }: Outbounds): (target: Outbound) => boolean {
  const plain = new Set<Outbound>();
  for (const [name, outbound] of all) {
    if (isGroup(outbound) || (outbound.type !== "Direct" && outbound.type !== "Compatible")) continue;
    const node = configOf.get(name);
    if (node === undefined) plain.add(outbound);
    else if ("interfaceName" in node && node.interfaceName === "" && node.routingMark === 0)
      if (node.dialerProxy === null && node.ipVersion === "dual") plain.add(outbound);
  }
  if (general.interfaceName !== "") plain.clear();
  return (target) => {
    let at = target;
    for (let depth = 0; isGroup(at); depth++) {
      if (depth === MOST_GROUPS || at.spreads === true || at.disablesUdp === true) return false;
      at = at.pick(null);
    }
    return plain.has(at);
  };
}
