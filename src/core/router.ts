import type { Outbound } from "./outbound.ts";
import type { Facts, Rule } from "./rule.ts";
import type { Destination, Metadata } from "./session.ts";

export interface Decision {
  /** The leaf, after every group has picked. */
  readonly outbound: Outbound;
  /** Names from the rule's target down to the leaf, the leaf last. */
  readonly chain: readonly string[];
  /** What the outbound is asked for. */
  readonly destination: Destination;
  /** Null: mode is global or direct, the listener named a target, or nothing matched. */
  readonly rule: Rule | null;
  /** All that was learnt on the way. */
  readonly facts: Facts;
}

export interface Router {
  /** Never throws for want of a match: no match is DIRECT. Throws `DialError` where a listener's target is unknown. */
  route(metadata: Metadata, signal: AbortSignal): Promise<Decision>;
}
