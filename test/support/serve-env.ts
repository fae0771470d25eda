/** What sessions are served with, without kernel-direct, sniffing and limits. */
import type { FlowWatch } from "#core/flow-watch.ts";
import { type Log, SILENT } from "#core/log.ts";
import type { Router } from "#core/router.ts";
import type { LiveTable } from "#dataplane/connections.ts";
import { LoopDetector } from "#dataplane/loop-detector.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";
import { countingLedger } from "./counting-ledger.ts";

const UNWATCHED: FlowWatch = { decided() {}, connected() {} };

export interface PlainServe {
  readonly router: Router;
  readonly live: LiveTable;
  readonly log?: Log;
  readonly timers?: IdleTimers;
}

export function plainServeEnv({ router, live, log = SILENT, timers = new IdleTimers() }: PlainServe) {
  const loops = new LoopDetector(() => false);
  const [enter, leave] = [() => {}, () => {}];
  return {
    router,
    live,
    log,
    timers,
    flows: UNWATCHED,
    loops,
    reach: { of: () => null },
    sniffer: null,
    ledger: countingLedger(),
    enter,
    leave,
  };
}
