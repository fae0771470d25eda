/** What a node of a fleet may spend of a quota that all nodes have in common, instead of an account of its own. */
import type { Direction } from "#core/meter.ts";
import type { QuotaView, UserQuota } from "#core/users.ts";

export interface QuotaShare {
  readonly quota: UserQuota;
  /** Nothing more may be moved here: the quota is used up, as far as can be known. */
  readonly isOver: boolean;
  /** What may be moved of what was lent; 0 or less: it is spent. */
  readonly leftBytes: number;
  /** What was lent is spent and more has been asked for: what comes is held for a moment. */
  readonly isWaiting: boolean;
  /** `bytes` is negative for what was counted and never went out. */
  spend(direction: Direction, bytes: number): void;
  /** All nodes together have moved so much since the user's counters were set back. */
  learn(movedBytes: number): void;
  /** Over all nodes, in the present period; null: not known yet. */
  used(): QuotaView | null;
}
