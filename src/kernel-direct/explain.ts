/** Why a destination is, or is not, left to the kernel: for people who wonder. */
import type { KernelDirectExplanation } from "#core/kernel-direct.ts";
import type { InboundInfo, Ip } from "#core/session.ts";
import type { DirectClassifier } from "./direct-classifier.ts";

export function explainDirect(
  classifier: DirectClassifier,
  host: string | null,
  addresses: readonly Ip[],
  inbound: Pick<InboundInfo, "ruleList" | "target">,
): readonly KernelDirectExplanation[] {
  return addresses.map((ip) => {
    if (!classifier.isLearnable(ip))
      return { ip, direct: false, reason: "private, reserved and made-up addresses are never learnt" };
    return { ip, ...classifier.classify(host, ip, inbound) };
  });
}

/** One line an address. */
export function renderDirect(host: string | null, rows: readonly KernelDirectExplanation[]): string {
  if (rows.length === 0) return `kernel-direct: ${host} has no address, there is nothing to learn`;
  return rows
    .map(
      ({ ip, direct, reason }) =>
        `kernel-direct: ${ip}: ${direct ? "certainly DIRECT" : "not learnt as DIRECT"}: ${reason}`,
    )
    .join("\n");
}
