/** The life of one TCP connection, from accept to close, whether the event loop or a worker has its socket. */
import type { Duplex } from "node:stream";
import type { DialError } from "#core/errors.ts";
import type { DialEvents } from "#core/accepted.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import { dialOf, reportDial, type Decision } from "#core/router.ts";
import type { OffloadedClient, StreamSession } from "#core/session.ts";
import type { Sniffed } from "#core/sniffer.ts";
import { ActiveRelay } from "./active-relay.ts";
import { dialFailed } from "./connection-log.ts";
import { relayByWorker } from "./decided.ts";
import type { LiveEntry } from "./connections.ts";
import { relay } from "./event-loop/pump.ts";
import { HTTP_PORT, redirect } from "./redirect.ts";
import { flush } from "./refuse.ts";
import type { SessionEnv } from "./session-env.ts";

/** Never throws: whatever goes wrong belongs to this connection. `onEnd` is called once, when it has ended. */
export function serveSession(session: StreamSession, env: SessionEnv, onEnd: () => void): void {
  new OpeningSession(session, env, onEnd).start();
}

/**
 * A connection until its bytes move: decide, dial, reply. A worker that has the socket dials and relays by itself where
 * it can; in all other cases the event loop takes the socket over, with everything that was decided by then.
 */
class OpeningSession implements DialEvents {
  readonly #session: StreamSession;
  readonly #env: SessionEnv;
  readonly #entry: LiveEntry;
  readonly #onEnd: () => void;
  /** Null: the event loop has the socket. */
  #offloaded: OffloadedClient | null = null;
  #decision: Decision | null = null;
  #isDialled = false;
  /** Of a worker's dial: more addresses are left where this one fails. */
  #isFirstOfMany = false;
  #noted: Disposable | null = null;
  #isOver = false;
  /** A client that hangs up ends the dial. The stream keeps it, so it keeps no more than the entry. */
  readonly #onGone: () => void;

  constructor(session: StreamSession, env: SessionEnv, onEnd: () => void) {
    this.#session = session;
    this.#env = env;
    this.#onEnd = onEnd;
    const entry = env.live.open(session.metadata); // visible in /connections until the end
    this.#entry = entry;
    this.#onGone = () => entry.close("client-lost");
  }

  start(): void {
    const { backend, sniffer } = this.#env;
    const { metadata, offloaded = null } = this.#session;
    const isWorkers =
      offloaded !== null && backend?.resume !== undefined && sniffer?.wants(metadata) !== true;
    if (!isWorkers) return this.#attempt(() => this.#openStream());
    this.#offloaded = offloaded;
    offloaded.worker.events = this;
    this.#entry.resets = offloaded.worker;
    this.#attempt(() => this.#decide(null));
  }

  /** Whatever is thrown makes the dial fail. */
  #attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Continues in the same turn when there is nothing to wait for. */
  #then<T>(value: T | Promise<T>, next: (value: T) => void): void {
    if (value instanceof Promise) void this.#wait(value, next);
    else next(value);
  }

  /** Never rejects. */
  async #wait<T>(value: Promise<T>, next: (value: T) => void): Promise<void> {
    try {
      const found = await value;
      if (!this.#isOver) next(found);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Takes the socket from a worker that still has it. */
  #openStream(): void {
    const { stream } = this.#session;
    stream.on("error", this.#onGone);
    stream.once("close", this.#onGone);
    if (stream.destroyed) return this.#leave();
    const { sniffer } = this.#env;
    const reading = sniffer === null ? null : sniffer.readStream(this.#session, this.#entry.signal);
    this.#then(reading, (sniffed) => this.#decide(sniffed));
  }

  #decide(sniffed: Sniffed | null): void {
    const { router } = this.#env;
    const { metadata } = this.#entry;
    const known = this.#decision ?? (sniffed === null ? (router.decide?.(metadata) ?? null) : null);
    if (known !== null) return this.#decided(known);
    this.#then(router.route(metadata, this.#entry.signal, sniffed), (decision) => this.#decided(decision));
  }

  #decided(decision: Decision): void {
    this.#decision = this.#entry.decision = decision;
    const checked = this.#env.loops.beforeCheck(this.#entry.metadata);
    if (checked instanceof Promise) this.#then(checked, () => this.#dial(decision));
    else this.#dial(decision);
  }

  #dial(decision: Decision): void {
    this.#env.loops.check(this.#entry.metadata, decision);
    if (this.#offloaded === null) this.#dialByEventLoop(decision);
    else this.#planDial(decision);
  }

  #dialByEventLoop(decision: Decision): void {
    const { metadata, signal } = this.#entry;
    this.#env.flows.decided(decision);
    const reach = this.#env.reach.of(metadata, decision);
    const dialling = decision.outbound.connect(dialOf(decision), { signal, metadata, reach });
    this.#then(dialling, (remote) => this.#onRemote(remote, decision));
  }

  #onRemote(remote: Duplex, decision: Decision): void {
    this.#isDialled = true;
    const dialled = { entry: this.#entry, remote, onEnd: this.#onEnd };
    const noted = this.#env.loops.watch(decision, remote);
    using undo = new DisposableStack();
    const active = undo.use(new ActiveRelay({ ...dialled, noted }, this.#env));
    this.#session.reply(null);
    const ended = this.#relay(this.#session.stream, remote, active);
    undo.move();
    endAfter(ended, active);
  }

  #relay(stream: Duplex, remote: Duplex, active: ActiveRelay): Promise<void> {
    const { backend, timers, idleMs, halfClosedIdleMs } = this.#env;
    const { signal, decision } = this.#entry;
    const { meter } = active;
    const instead = decision?.destination.port === HTTP_PORT ? (meter.redirect ?? null) : null;
    if (instead !== null) {
      remote.destroy();
      return redirect(stream, instead);
    }
    stream.off("close", this.#onGone); // from here on the relay decides: an end both ways is no fault
    const onBytes = active.onBytes.bind(active);
    const onRemoteLost = active.onRemoteLost.bind(active);
    const onSilent = active.onSilent.bind(active);
    const times = { timers, idleMs, halfClosedIdleMs };
    return relay(stream, remote, meter, { backend, ...times, signal, onBytes, onRemoteLost, onSilent });
  }

  #planDial(decision: Decision): void {
    const { metadata } = this.#entry;
    const { destination, outbound } = decision;
    const reach = this.#env.reach.of(metadata, decision);
    const isGoverned = this.#env.ledger.free !== true;
    const limited = isGoverned || metadata.inbound.userId !== undefined;
    // A client that is redirected instead is answered by the event loop.
    const plan =
      isGoverned && destination.port === HTTP_PORT
        ? null
        : (outbound.plain?.(dialOf(decision), reach, () => this.#entry.signal) ?? null);
    if (plan instanceof Promise) this.#then(plan, (found) => this.#dialBy(decision, found, limited));
    else this.#dialBy(decision, plan, limited);
  }

  #dialBy(decision: Decision, plan: DialPlan | null, limited: boolean): void {
    if (plan === null) this.#take();
    else this.#dialByWorker(decision, plan, limited);
  }

  #dialByWorker(decision: Decision, plan: DialPlan, limited: boolean): void {
    const offloaded = this.#offloaded ?? null;
    if (this.#isOver || offloaded === null) return;
    const { worker, success, wire } = offloaded;
    if (!plan.isFirstOfMany) this.#env.flows.decided(decision);
    this.#noted = this.#env.loops.dials(this.#entry.metadata, decision, worker, plan);
    this.#isFirstOfMany = plan.isFirstOfMany;
    this.#entry.remoteAddress = plan.ip;
    worker.dial(plan, success, limited, wire);
  }

  dialled(): void {
    if (this.#isOver) return;
    this.#isOver = true; // of the opening: what the worker reports from now on is the relay's
    const { worker } = this.#offloaded as OffloadedClient;
    relayByWorker(worker, { entry: this.#entry, noted: this.#noted, onEnd: this.#onEnd }, this.#env);
  }

  failed(error: DialError | null): void {
    if (error === null || this.#isFirstOfMany) this.#take(); // and tries all addresses
    else this.#fail(error);
  }

  ended(): void {
    if (this.#isOver) return;
    this.#leaveWorker();
    this.#leave();
  }

  /** The event loop takes the connection over from the worker. */
  #take(): void {
    if (this.#isOver) return;
    this.#leaveWorker();
    this.#attempt(() => this.#openStream());
  }

  #leaveWorker(): void {
    this.#noted?.[Symbol.dispose]();
    this.#noted = this.#entry.resets = null;
    if (this.#offloaded) this.#offloaded.worker.events = null;
    this.#offloaded = null;
  }

  #fail(failure: unknown): void {
    if (this.#isOver) return;
    const { log } = this.#env;
    const { metadata } = this.#entry;
    this.#leaveWorker();
    if (this.#decision !== null && !this.#isDialled) reportDial(this.#decision, failure);
    const error = dialFailed(log, metadata, this.#decision, failure);
    this.#entry.notDialled(error);
    this.#session.reply(error); // before its stream is looked at: it may want nothing of it
    const { stream } = this.#session;
    void flush(stream).then(() => {
      stream.destroy();
      this.#end();
    });
  }

  /** The client went while nothing was wrong yet. */
  #leave(): void {
    this.#entry.because("client-lost");
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#entry[Symbol.dispose]();
    this.#onEnd();
  }
}

/** Apart from the opening, so that neither session nor streams are kept until the end. */
function endAfter(ended: Promise<void>, active: ActiveRelay): void {
  void ended.then(() => active.onEnded());
}
