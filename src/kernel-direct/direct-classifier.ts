/** What a generation of the program says of destinations, so that kernel-direct may learn. */
import type { Decision } from "#core/router.ts";
import type { InboundInfo, Ip } from "#core/session.ts";

/** What one runtime thinks of destinations. */
export interface DirectClassifier {
  /** Is everything to it DIRECT? `reason` is for people. */
  classify(host: string | null, ip: Ip, inbound: Pick<InboundInfo, "ruleList" | "target">): Verdict;
  /** False for addresses that are never learnt: private, fake, reserved. */
  isLearnable(ip: Ip): boolean;
  /** Was this flow sent out by the plain DIRECT, whose path the kernel would take, too? */
  isDirect(decision: Decision): boolean;
  /** Changes when a group changes sides, the mode is switched, or rules are switched off. */
  signature(): string;
}

export interface Verdict {
  readonly direct: boolean;
  readonly reason: string;
}
