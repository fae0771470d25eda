/** Rules on the marks of kernel-direct's classifier (kernel-direct.md §4.6), in chains that the others jump to. */
import type { CapturePlan, SteeringMarks, TunAddress } from "#core/capture.ts";
import { quoted } from "./exclusions.ts";
import { DIRECT_MARK_CHAIN, PROXY_MARK_CHAIN, type TableName, UNTRACKED_CHAIN } from "./names.ts";
import { redirect, toTun } from "./captured.ts";

const COMMENT = 'comment "svc-kernel-direct"';

/** Empties the chains and fills them anew; part of a transaction in which they exist. */
export function steeringChains(table: TableName, plan: CapturePlan, marks: SteeringMarks | null): string {
  return Object.entries(steeringRules(plan, marks))
    .map(([chain, rules]) =>
      [`flush chain ${table} ${chain}`, ...rules.map((rule) => `add rule ${table} ${chain} ${rule}`)].join(
        "\n",
      ),
    )
    .join("\n");
}

/** By chain. `accept` ends the chain that jumped here: the packet is left as it is. */
export function steeringRules(
  plan: CapturePlan,
  marks: SteeringMarks | null,
): Readonly<Record<string, readonly string[]>> {
  const { direct = 0, proxy = null, untracked = false } = marks ?? {};
  const has = (bit: number): string => `meta mark & ${bit} == ${bit}`;
  return {
    [DIRECT_MARK_CHAIN]: direct === 0 ? [] : [`${has(direct)} counter accept ${COMMENT}`],
    [PROXY_MARK_CHAIN]:
      proxy === null
        ? []
        : [`${has(proxy)} ${redirect(plan)} ${COMMENT}`, `${has(proxy)} ${toTun(plan)} accept ${COMMENT}`],
    [UNTRACKED_CHAIN]: untracked ? untrackedAnswers(plan) : [],
  };
}

/**
 * Connection tracking would call the answers to packets that it has not seen invalid, and many a firewall drops those.
 * Answers to hijacked questions are tracked: they still have to be given the address that was asked.
 */
function untrackedAnswers({ device, inet4, inet6 }: CapturePlan): readonly string[] {
  const from = `iifname ${quoted(device.name)}`;
  const rule = (ip: string, own: TunAddress | null): readonly string[] =>
    own === null ? [] : [`${from} ${ip} saddr != ${own.next} counter notrack ${COMMENT}`];
  return [...rule("ip", inet4), ...rule("ip6", inet6)];
}
