/** The life of a TCP conversation, from accept to close. */
import type { FlowWatch } from "#core/flow-watch.ts";
import type { Log } from "#core/log.ts";
import type { Ledger } from "#core/meter.ts";
import { reportDial, type Decision, type Router } from "#core/router.ts";
import type { StreamSession } from "#core/session.ts";
import type { Sniffer } from "#core/sniffer.ts";
import { parseIp } from "#net/ip.ts";
import type { Carrier } from "./carrier.ts";
import type { LiveTable } from "./live-table.ts";
import type { LoopGuard } from "./loop-guard.ts";
import { relay } from "./pump.ts";
import { dialFailed, matched } from "./session-log.ts";
import { HTTP_PORT, redirect } from "./redirect.ts";
import { flush } from "./refuse.ts";
import type { Sweep } from "./sweep.ts";

export interface ServeEnv {
  readonly router: Router;
  /** Null: nobody looks at what clients send. */
  readonly sniffer: Sniffer | null;
  readonly ledger: Ledger;
  readonly flows: FlowWatch;
  readonly loops: LoopGuard;
  readonly live: LiveTable;
  readonly log: Log;
  readonly sweep: Sweep;
  readonly carrier: Carrier | null;
  readonly idleMs: number;
  readonly halfClosedIdleMs: number;
}

/** Never rejects: whatever goes wrong belongs to this conversation. */
export async function serve(session: StreamSession, env: ServeEnv): Promise<void> {
  const { metadata, stream } = session;
  const { flows, ledger, live, log, loops, router, sniffer } = env;
  using entry = live.open(metadata); // visible in /connections until the scope ends
  const { signal } = entry;
  const onGone = (): void => entry.close(); // a client that hangs up ends the dial
  let decision: Decision | null = null;
  let isDialled = false;
  stream.on("error", onGone);
  stream.once("close", onGone);
  try {
    if (stream.destroyed) return;
    const reading = sniffer === null ? null : sniffer.readStream(session, signal);
    const sniffed = reading === null ? null : await reading;
    decision = entry.decision = await router.route(metadata, signal, sniffed);
    loops.check(metadata, decision);
    flows.decided(metadata, decision);
    const remote = await decision.outbound.connect(decision.destination, { signal, metadata });
    reportDial(decision, null);
    isDialled = true;
    entry.dialled(remote);
    using _ = loops.watch(decision, remote);
    flows.connected(metadata, decision, () => parseIp(entry.remoteAddress));
    log.info(() => matched(metadata, entry.decision as Decision));
    using meter = ledger.open(metadata, decision); // never throws; a failed dial is no session
    session.reply(null);
    const onBytes = entry.count.bind(entry);
    const instead = decision.destination.port === HTTP_PORT ? (meter.redirect ?? null) : null;
    if (instead !== null) {
      remote.destroy();
      return await redirect(stream, instead);
    }
    stream.off("close", onGone); // from here the relay knows better: an end both ways is no fault
    await relay(stream, remote, meter, { ...env, signal, onBytes });
  } catch (error) {
    if (decision !== null && !isDialled) reportDial(decision, error);
    session.reply(dialFailed(log, metadata, decision, error));
    await flush(stream);
  } finally {
    stream.destroy();
  }
}
