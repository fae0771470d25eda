import type { Decision } from "./router.ts";
import type { Ip, Metadata } from "./session.ts";

/** Told of every conversation. Synchronous, cheap where nobody learns, and never throws. */
export interface FlowWatch {
  /** The rules have decided; nothing has been dialled yet. */
  decided(metadata: Metadata, decision: Decision): void;
  /** The dial succeeded. `peer` is asked for only where somebody wants it; null: not known. */
  connected(metadata: Metadata, decision: Decision, peer: () => Ip | null): void;
}

/** Nobody learns. */
export const UNWATCHED: FlowWatch = { decided() {}, connected() {} };
