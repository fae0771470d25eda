/** One generation of the program: everything that a configuration describes, built whole beside the previous one. */
import type { Config } from "#config/config.ts";
import type { Session } from "#core/session.ts";
import type { Trust } from "#core/trust.ts";
import type { Host } from "#host/host.ts";
import type { DirectClassifier } from "#kernel-direct/direct-classifier.ts";
import type { RelayBackend } from "#dataplane/backend.ts";
import type { DecisionSource } from "#dataplane/decision-source.ts";
import { serveDatagrams } from "#dataplane/udp/udp-session.ts";
import type { DatagramEnv } from "#dataplane/udp/datagram-env.ts";
import { ReachGuard } from "#dataplane/reach.ts";
import { refuse } from "#dataplane/refuse.ts";
import { serveSession } from "#dataplane/session.ts";
import type { SessionEnv } from "#dataplane/session-env.ts";
import { HALF_CLOSED_IDLE_MS, TCP_IDLE_MS, UDP_IDLE_MS, UDP_SESSION_IDLE_MS } from "#dataplane/timeouts.ts";
import type { RuleRouter } from "#router/rule-router.ts";
import type { Users } from "#users/users.ts";
import type { DnsAddress, DnsListeners } from "./dns-listener.ts";
import type { FakeIpStore } from "./fake-ip-store.ts";
import type { Inbounds } from "./inbounds.ts";
import { openDirectClassifier } from "./direct-classifier.ts";
import type { RuleData } from "./lists.ts";
import type { DnsStack } from "./names.ts";
import type { Outbounds } from "./outbounds.ts";
import { openParts, type Parts } from "./parts.ts";
import type { RuntimeEnv } from "./runtime-env.ts";
import { openDecisionSource } from "./decision-source.ts";
import { openSniffer } from "./sniffing.ts";
import { InFlight } from "./tickets.ts";
import type { TimeKeeper } from "./time-keeper.ts";
import type { TunChange } from "./tun-change.ts";

export class Runtime {
  readonly config: Config;
  readonly outbounds: Outbounds;
  readonly router: RuleRouter;
  readonly inbounds: Inbounds;
  readonly names: DnsStack;
  readonly lists: RuleData;
  /** The certificate authorities that TLS clients trust. */
  readonly trust: Trust;
  /** What kernel-direct may learn while this runtime is in force. */
  readonly classifier: DirectClassifier;
  readonly #fakeIps: FakeIpStore | null;
  readonly #dnsListeners: DnsListeners;
  readonly #tuns: TunChange;
  readonly #timeKeeper: TimeKeeper;
  readonly #owned: AsyncDisposableStack;
  readonly #env: SessionEnv & DatagramEnv;
  readonly #sessions = new InFlight();
  readonly #users: Users;
  readonly #host: Host;

  /** `carrier` null: the portable pump moves everything. */
  private constructor(
    parts: Parts,
    backend: RelayBackend | null,
    owned: AsyncDisposableStack,
    { host, mode }: RuntimeEnv,
  ) {
    this.config = parts.config;
    this.outbounds = parts.outbounds;
    this.router = parts.router;
    this.inbounds = parts.inbounds;
    this.names = parts.names;
    this.lists = parts.lists;
    this.trust = parts.trust;
    this.classifier = openDirectClassifier({ ...parts, mode });
    this.#fakeIps = parts.fakeIps;
    this.#dnsListeners = parts.dnsListeners;
    this.#tuns = parts.tuns;
    this.#timeKeeper = parts.timeKeeper;
    this.#owned = owned;
    this.#users = host.users;
    this.#host = host;
    const { metering: ledger, live, log, timers, datagrams } = host;
    this.#env = {
      router: parts.router,
      sniffer: openSniffer(parts.config.sniffer, { names: parts.names, scope: parts.lists.scope, log }),
      ledger,
      flows: host.kernelDirect,
      loops: host.loops,
      reach: new ReachGuard(
        host.sockets.listening,
        host.selfDials,
        parts.config.general.allowLoopbackFromLan,
      ),
      live,
      log,
      timers,
      backend,
      budget: datagrams,
      idleMs: TCP_IDLE_MS,
      halfClosedIdleMs: HALF_CLOSED_IDLE_MS,
      enter: () => this.#sessions.enter(),
      leave: () => this.#sessions.leave(),
      sessionIdleMs: UDP_SESSION_IDLE_MS,
    };
  }

  /** Throws with nothing left open and nothing changed; `previous` stays in force. */
  static async open(config: Config, previous: Runtime | null, env: RuntimeEnv): Promise<Runtime> {
    await using undo = new AsyncDisposableStack();
    const carrying = env.host.relayPath.choose(config.general); // its threads start meanwhile
    const adopt: RuntimeEnv["adopt"] = async (...all) => {
      await carrying; // nothing may take time any more when the users have been taken over
      await env.adopt(...all);
    };
    const parts = await openParts(config, previous, { ...env, adopt }, undo);
    const runtime = new Runtime(parts, await carrying, undo.move(), env);
    const before = previous?.names.dns ?? null;
    if (before !== null) runtime.names.dns?.importState(before.exportState());
    return runtime;
  }

  get dnsAddresses(): readonly DnsAddress[] {
    return this.#dnsListeners.addresses;
  }

  /** New connections come to this runtime from now on. Synchronous. */
  activate(): void {
    this.#host.sockets.useThreads(this.#env.backend?.accepting ?? null);
    this.#host.relayPath.decideBy(this.#env.backend === null ? null : this.#decisionSource());
    this.inbounds.activate();
    this.#dnsListeners.activate();
    this.lists.activate();
    this.#tuns.activate();
    this.#timeKeeper.activate();
  }

  /** What is to be sniffed, and captured clients of this machine, are for the main thread. */
  #decisionSource(): DecisionSource {
    const { config, router, outbounds, names } = this;
    const { clock, loops, selfDials, sockets } = this.#host;
    return openDecisionSource({
      router,
      session: this.#env,
      findProcessMode: config.general.findProcessMode,
      outbound: (name) => outbounds.all.get(name) ?? null,
      captures: () => loops.isArmed,
      isHeld: () => selfDials.busy, // its client may be one of ours
      ownPorts: () => sockets.listening.tcpPorts,
      resolver: names.resolver,
      knownNames: names.knownNames,
      clock: clock.memory,
      namedAddresses: names.dns?.namedAddresses ?? null,
      usesFakeIp: (ip) => void names.dns?.fakeIp?.hostOf(ip), // the one unused for the longest time gives way
    });
  }

  /** Never throws; the session belongs to this runtime until it ends. */
  serve(arrived: Session): void {
    this.#sessions.enter();
    const passed = this.#users.enter(arrived);
    if (typeof passed === "string") {
      const onEnd = this.#endOf(arrived, () => {});
      return void refuse(arrived, passed, this.#env.log).finally(onEnd);
    }
    const { session, leave } = passed;
    const onEnd = this.#endOf(arrived, leave);
    if (session.network === "tcp") return serveSession(session, this.#env, onEnd);
    const idleMs = session.idleMs ?? UDP_IDLE_MS;
    void serveDatagrams(session, { ...this.#env, idleMs }).finally(onEnd);
  }

  /** Keeps nothing of the session: its streams may go long before it ends. */
  #endOf(session: Session, leave: () => void): () => void {
    const ended = session.network === "tcp" ? session.ended : undefined;
    return () => this.#leave(leave, ended);
  }

  #leave(leave: () => void, ended: (() => void) | undefined): void {
    leave();
    ended?.();
    this.#sessions.leave();
  }

  /**
   * Stops the listeners that `next` does not continue; settles when then `isLeft` has settled, the last session has ended and
   * everything is disposed of.
   */
  retire(next: Runtime | null, isLeft: () => Promise<void> = async () => {}): Promise<void> {
    const isReplaced = next !== null;
    // A session may last for hours: `next` is not kept for it.
    return this.#stop(next)
      .then(isLeft)
      .then(() => this.#end(isReplaced));
  }

  async #stop(next: Runtime | null): Promise<void> {
    if (next === null) this.#host.relayPath.decideBy(null);
    this.#host.invalidateRoutes(); // nothing is decided by what was in force
    if (next !== null) this.#fakeIps?.close();
    this.#timeKeeper[Symbol.dispose]();
    await this.lists.quiet();
    await this.#dnsListeners[Symbol.asyncDispose]();
    await this.inbounds.retire(next?.inbounds ?? null);
    await this.outbounds.quiet();
  }

  async #end(isReplaced: boolean): Promise<void> {
    await this.#sessions.drained();
    if (isReplaced) await this.names.dns?.answered();
    await this.#owned.disposeAsync();
  }
}
