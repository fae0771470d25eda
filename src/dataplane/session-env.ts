import type { FlowWatch } from "#core/flow-watch.ts";
import type { Log } from "#core/log.ts";
import type { Ledger } from "#core/meter.ts";
import type { Router } from "#core/router.ts";
import type { Sniffer } from "#core/sniffer.ts";
import type { RelayBackend, RelayTimeouts } from "./backend.ts";
import type { LiveTable } from "./connections.ts";
import type { LoopDetector } from "./loop-detector.ts";
import type { ReachGuard } from "./reach.ts";

/** What a TCP connection is served with; one for all connections of a generation. */
export interface SessionEnv extends RelayTimeouts {
  readonly router: Router;
  /** Null: the first bytes of clients are not looked at. */
  readonly sniffer: Sniffer | null;
  readonly ledger: Ledger;
  readonly flows: FlowWatch;
  readonly loops: LoopDetector;
  readonly reach: Pick<ReachGuard, "of">;
  readonly live: LiveTable;
  readonly log: Log;
  /** Null: the pump of the event loop relays everything. */
  readonly backend: RelayBackend | null;
  /** For a connection that begins without a session, because a worker has decided it; `leave` at its end. */
  readonly enter: () => void;
  readonly leave: () => void;
}
