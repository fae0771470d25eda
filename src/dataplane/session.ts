/** The life of a TCP conversation, from accept to close. */
import type { FlowWatch } from "#core/flow-watch.ts";
import type { Log } from "#core/log.ts";
import type { Ledger } from "#core/meter.ts";
import { dialOf, reportDial, type Decision, type Router } from "#core/router.ts";
import type { StreamSession } from "#core/session.ts";
import type { Sniffer } from "#core/sniffer.ts";
import { parseIp } from "#net/address/ip.ts";
import type { RelayBackend } from "./backend.ts";
import type { LiveEntry, LiveTable } from "./connections.ts";
import type { LoopDetector } from "./loop-detector.ts";
import type { ReachGuard } from "./reach.ts";
import { relay } from "./event-loop/pump.ts";
import { dialFailed, matched } from "./connection-log.ts";
import { HTTP_PORT, redirect } from "./redirect.ts";
import { flush } from "./refuse.ts";
import type { IdleTimers } from "./idle-timers.ts";

export interface SessionEnv {
  readonly router: Router;
  /** Null: nobody looks at what clients send. */
  readonly sniffer: Sniffer | null;
  readonly ledger: Ledger;
  readonly flows: FlowWatch;
  readonly loops: LoopDetector;
  readonly reach: Pick<ReachGuard, "of">;
  readonly live: LiveTable;
  readonly log: Log;
  readonly timers: IdleTimers;
  readonly backend: RelayBackend | null;
  readonly idleMs: number;
  readonly halfClosedIdleMs: number;
  /** Of what goes on without a session that arrived; at its end it leaves. */
  readonly enter: () => void;
  readonly leave: () => void;
}

/** What has come out of a session before its client was taken from a relay thread. */
export interface ResumeState {
  readonly entry: LiveEntry;
  readonly decision: Decision | null;
  /** Why the dial has failed; null: it is still to come. */
  readonly failure: unknown;
}

/** Never rejects: whatever goes wrong belongs to this conversation. */
export function serveSession(session: StreamSession, env: SessionEnv): Promise<void> {
  const entry = env.live.open(session.metadata); // visible in /connections until the end
  return resumeSession(session, env, { entry, decision: null, failure: null });
}

/** The same from where somebody else has left it. */
export function resumeSession(session: StreamSession, env: SessionEnv, begun: ResumeState): Promise<void> {
  return finish(begin(session, env, begun), begun.entry);
}

/** What is left of a conversation once its bytes move. */
interface ActiveRelay {
  readonly ended: Promise<void>;
  readonly owned: DisposableStack;
}

/** Waits without the session and its streams in reach: a carrier may have done with them, and there are thousands. */
async function finish(beginning: Promise<ActiveRelay | null>, entry: LiveEntry): Promise<void> {
  using _entry = entry;
  const going = await beginning;
  if (going === null) return;
  using _owned = going.owned;
  await going.ended;
}

/** From accept to the first byte. Null: the conversation is over. */
async function begin(
  session: StreamSession,
  env: SessionEnv,
  begun: ResumeState,
): Promise<ActiveRelay | null> {
  const { metadata, stream } = session;
  const { flows, ledger, log, loops, router, sniffer } = env;
  const { entry, failure } = begun;
  const { signal } = entry;
  const onGone = (): void => entry.close(); // a client that hangs up ends the dial
  let { decision } = begun;
  let isDialled = false;
  using owned = new DisposableStack();
  stream.on("error", onGone);
  stream.once("close", onGone);
  try {
    if (failure !== null) throw failure;
    if (stream.destroyed) return null;
    const reading = sniffer === null ? null : sniffer.readStream(session, signal);
    const sniffed = reading === null ? null : await reading;
    if (decision === null && sniffed === null) decision = router.decide?.(metadata) ?? null;
    decision = entry.decision = decision ?? (await router.route(metadata, signal, sniffed));
    const turn = loops.beforeCheck(metadata);
    if (turn !== null) await turn;
    loops.check(metadata, decision);
    flows.decided(decision);
    const reach = env.reach.of(metadata, decision);
    const remote = await decision.outbound.connect(dialOf(decision), { signal, metadata, reach });
    reportDial(decision, null);
    isDialled = true;
    entry.dialled(remote);
    owned.use(loops.watch(decision, remote));
    flows.connected(decision, () => parseIp(entry.remoteAddress));
    log.info(() => matched(metadata, entry.decision as Decision));
    const meter = owned.use(ledger.open(metadata, decision)); // never throws; a failed dial is no session
    session.reply(null);
    const onBytes = entry.count.bind(entry);
    const instead = decision.destination.port === HTTP_PORT ? (meter.redirect ?? null) : null;
    if (instead !== null) {
      remote.destroy();
      return { ended: redirect(stream, instead), owned: owned.move() };
    }
    stream.off("close", onGone); // from here the relay knows better: an end both ways is no fault
    const ended = relay(stream, remote, meter, { ...env, signal, onBytes });
    return { ended, owned: owned.move() };
  } catch (error) {
    if (decision !== null && !isDialled) reportDial(decision, error);
    session.reply(dialFailed(log, metadata, decision, error));
    await flush(stream);
    stream.destroy();
    return null;
  }
}
