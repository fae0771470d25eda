/** What sessions of datagrams work with. */
import type { FlowWatch } from "#core/flow-watch.ts";
import type { Log } from "#core/log.ts";
import type { Ledger } from "#core/meter.ts";
import type { Router } from "#core/router.ts";
import type { Sniffer } from "#core/sniffer.ts";
import type { DatagramBudget } from "./limits.ts";
import type { LiveTable } from "#dataplane/connections.ts";
import type { LoopDetector } from "#dataplane/loop-detector.ts";
import type { ReachGuard } from "#dataplane/reach.ts";
import type { IdleTimers } from "#dataplane/idle-timers.ts";

export interface DatagramEnv {
  readonly router: Router;
  /** Null: datagrams are not sniffed. */
  readonly sniffer: Sniffer | null;
  readonly ledger: Ledger;
  readonly flows: FlowWatch;
  readonly loops: LoopDetector;
  readonly reach: Pick<ReachGuard, "of">;
  readonly live: LiveTable;
  readonly log: Log;
  readonly timers: IdleTimers;
  readonly budget: DatagramBudget;
  /** Of one path. */
  readonly idleMs: number;
  /** Of a session without any path: it ends, and its inbound may open another for the same source. */
  readonly sessionIdleMs: number;
}
