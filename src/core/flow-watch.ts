import type { Decision } from "./router.ts";
import type { Ip } from "./session.ts";

/** Called for every connection. Synchronous, cheap when nothing is learnt, and never throws. */
export interface FlowWatch {
  /** The rules have decided; nothing has been dialled yet. */
  decided(decision: Decision): void;
  /** The dial succeeded. `peer` is asked for only where the decision did not say; null: not known. */
  connected(decision: Decision, peer: () => Ip | null): void;
}
