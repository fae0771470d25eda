/** What sessions are served with where nobody learns, sniffs or limits. */
import type { FlowWatch } from "#core/flow-watch.ts";
import { type Log, SILENT } from "#core/log.ts";
import type { Router } from "#core/router.ts";
import type { LiveTable } from "#relay/live-table.ts";
import { LoopGuard } from "#relay/loop-guard.ts";
import { Sweep } from "#relay/sweep.ts";
import { countingLedger } from "./counting-ledger.ts";

const UNWATCHED: FlowWatch = { decided() {}, connected() {} };

export interface PlainServe {
  readonly router: Router;
  readonly live: LiveTable;
  readonly log?: Log;
  readonly sweep?: Sweep;
}

export function plainServeEnv({ router, live, log = SILENT, sweep = new Sweep() }: PlainServe) {
  const loops = new LoopGuard(() => false);
  const [enter, leave] = [() => {}, () => {}];
  return {
    router,
    live,
    log,
    sweep,
    flows: UNWATCHED,
    loops,
    reach: { of: () => null },
    sniffer: null,
    ledger: countingLedger(),
    enter,
    leave,
  };
}
