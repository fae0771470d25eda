/** One generation of the program: everything that a configuration stands for, built whole beside the one before. */
import type { Config, Mode } from "#config/config.ts";
import type { Health } from "#core/group.ts";
import { messageOf } from "#core/errors.ts";
import type { Session, StreamSession } from "#core/session.ts";
import type { Trust } from "#core/trust.ts";
import type { PersistFakeIp } from "#dns/fake-ip.ts";
import { openDnsServer } from "#dns/server.ts";
import type { Host } from "#host.ts";
import { ANY_V6, bytesOfIp, parseIp } from "#net/ip.ts";
import type { Judge } from "#kernel-direct/kernel-direct.ts";
import { openDirectDialer } from "#net/direct-dialer.ts";
import { openTrust } from "#net/trust.ts";
import { markDescriptor } from "#platform/portable.ts";
import { openProcessLookup } from "#platform/process.ts";
import type { Carrier } from "#relay/carrier.ts";
import { serveDatagrams, type DatagramEnv } from "#relay/datagrams.ts";
import { refuse } from "#relay/refuse.ts";
import { serveHeld } from "#relay/serve-held.ts";
import { serve, type ServeEnv } from "#relay/serve.ts";
import { HALF_CLOSED_IDLE_MS, TCP_IDLE_MS, UDP_IDLE_MS, UDP_SESSION_IDLE_MS } from "#relay/times.ts";
import { openRouter, type RuleRouter } from "#router/router.ts";
import type { Passed } from "#users/gate.ts";
import type { Users } from "#users/users.ts";
import { Exits } from "./exits.ts";
import { carryOver, FakeIpStore } from "./fake-ip-store.ts";
import { Inbounds } from "./inbounds.ts";
import { LeaseBook } from "./leases.ts";
import { openJudge } from "./judge.ts";
import { Lists } from "./lists.ts";
import { openNames, type Names } from "./names.ts";
import { openOutbounds, type Outbounds } from "./outbounds.ts";
import { openRules } from "./rules.ts";
import { nameSets } from "./scope.ts";
import { openSniffer, routable } from "./sniffing.ts";
import { Tickets } from "./tickets.ts";
import { TimeKeeper } from "./time-keeper.ts";
import type { TunChange } from "./tuns.ts";

export interface RuntimeEnv {
  readonly host: Host;
  readonly health: Health;
  /** Asked at every decision: a person may switch it while the runtime runs. */
  readonly mode: () => Mode;
  /** Takes what any listener accepts: the current runtime serves it, whichever opened the listener. */
  readonly accept: (session: Session) => void;
  /** Changes the TUNs for this configuration; the last thing that may take time. */
  readonly changeTuns: (config: Config, lists: Lists) => Promise<TunChange>;
  /** A rule provider has other contents. */
  readonly onRuleList: () => void;
  /** The last step of opening: the swap is in the turn of the event loop in which it settles; a throw closes everything again. */
  readonly adopt: (config: Config, inbounds: Inbounds) => Promise<void>;
  /** True at the start: a port that cannot be bound is logged and the rest runs. */
  readonly tolerant: boolean;
}

export class Runtime {
  readonly config: Config;
  readonly outbounds: Outbounds;
  readonly router: RuleRouter;
  readonly inbounds: Inbounds;
  readonly names: Names;
  readonly lists: Lists;
  /** What TLS clients believe. */
  readonly trust: Trust;
  /** What kernel-direct may learn while this runtime is in force. */
  readonly judge: Judge;
  readonly #fakeIps: FakeIpStore | null;
  readonly #dnsLeases: LeaseBook;
  readonly #tuns: TunChange;
  readonly #timeKeeper: TimeKeeper;
  readonly #owned: AsyncDisposableStack;
  readonly #env: ServeEnv & DatagramEnv;
  readonly #sessions = new Tickets();
  readonly #users: Users;
  readonly #host: Host;

  private constructor(parts: Parts, owned: AsyncDisposableStack, { host, mode }: RuntimeEnv) {
    this.config = parts.config;
    this.outbounds = parts.outbounds;
    this.router = parts.router;
    this.inbounds = parts.inbounds;
    this.names = parts.names;
    this.lists = parts.lists;
    this.trust = parts.trust;
    this.judge = openJudge({ ...parts, mode });
    this.#fakeIps = parts.fakeIps;
    this.#dnsLeases = parts.dnsLeases;
    this.#tuns = parts.tuns;
    this.#timeKeeper = parts.timeKeeper;
    this.#owned = owned;
    this.#users = host.users;
    this.#host = host;
    const { metering: ledger, live, log, sweep, datagrams } = host;
    this.#env = {
      router: parts.router,
      sniffer: openSniffer(parts.config.sniffer, { names: parts.names, scope: parts.lists.scope, log }),
      ledger,
      flows: host.kernelDirect,
      loops: host.loops,
      live,
      log,
      sweep,
      carrier: parts.carrier,
      budget: datagrams,
      idleMs: TCP_IDLE_MS,
      halfClosedIdleMs: HALF_CLOSED_IDLE_MS,
      sessionIdleMs: UDP_SESSION_IDLE_MS,
    };
  }

  /** Throws with nothing left open and nothing changed; `previous` goes on. */
  static async open(config: Config, previous: Runtime | null, env: RuntimeEnv): Promise<Runtime> {
    await using undo = new AsyncDisposableStack();
    const carrying = env.host.relayPath.choose(config.general.relay); // its threads start meanwhile
    const adopt: RuntimeEnv["adopt"] = async (...all) => {
      await carrying; // nothing may take time any more when the users have been taken over
      await env.adopt(...all);
    };
    const parts = await openParts(config, previous, { ...env, adopt }, undo);
    const runtime = new Runtime({ ...parts, carrier: await carrying }, undo.move(), env);
    if (runtime.names.dns !== null)
      carryOver(runtime.names.dns, previous?.names.dns?.exportState() ?? null, parts.fakeIps);
    return runtime;
  }

  /** New connections come to this runtime from now on. Synchronous. */
  activate(): void {
    this.#host.sockets.useThreads(this.#env.carrier?.fronts ?? null);
    this.inbounds.activate();
    this.#dnsLeases.activate();
    this.lists.activate();
    this.#tuns.activate();
    this.#timeKeeper.activate();
  }

  /** Never throws; the session belongs to this runtime until it ends. */
  serve(arrived: Session): void {
    this.#sessions.enter();
    const passed = this.#users.enter(arrived);
    const held = arrived.network === "tcp" ? (arrived.held ?? null) : null;
    if (held !== null && typeof passed !== "string")
      return serveHeld(arrived as StreamSession, held, this.#env, () => {
        passed.leave();
        this.#sessions.leave();
      });
    const served =
      typeof passed === "string" ? refuse(arrived, passed, this.#env.log) : this.#servePassed(passed);
    void this.#leaveAfter(served, arrived.network === "tcp" ? arrived.ended : undefined);
  }

  /** Keeps nothing of the session: its streams may go long before it ends. */
  async #leaveAfter(served: Promise<void>, ended: (() => void) | undefined): Promise<void> {
    await served;
    ended?.();
    this.#sessions.leave();
  }

  #servePassed({ session, leave }: Passed): Promise<void> {
    const served =
      session.network === "tcp"
        ? serve(session, this.#env)
        : serveDatagrams(session, { ...this.#env, idleMs: session.idleMs ?? UDP_IDLE_MS });
    return served.finally(leave);
  }

  /** Stops listening where `next` does not go on; settles when the last session has ended and all is disposed of. */
  async retire(next: Runtime | null): Promise<void> {
    if (next !== null) this.#fakeIps?.close();
    this.#timeKeeper[Symbol.dispose]();
    await this.lists.quiet();
    await this.#dnsLeases[Symbol.asyncDispose]();
    await this.inbounds.retire(next?.inbounds ?? null);
    await this.outbounds.quiet(); // its last session may last for hours
    await this.#sessions.drained();
    await this.#owned.disposeAsync();
  }
}

interface Parts {
  readonly config: Config;
  readonly outbounds: Outbounds;
  readonly router: RuleRouter;
  readonly inbounds: Inbounds;
  readonly names: Names;
  /** Null: `profile.store-fake-ip` is false. */
  readonly fakeIps: FakeIpStore | null;
  readonly lists: Lists;
  readonly trust: Trust;
  readonly dnsLeases: LeaseBook;
  readonly tuns: TunChange;
  readonly timeKeeper: TimeKeeper;
  /** Null: the portable pump moves everything. */
  readonly carrier: Carrier | null;
}

async function openParts(
  config: Config,
  previous: Runtime | null,
  { host, health, mode, accept, changeTuns, onRuleList, adopt, tolerant }: RuntimeEnv,
  undo: AsyncDisposableStack,
): Promise<Omit<Parts, "carrier">> {
  const { log, files, cache, sockets, egress } = host;
  const { interfaceName, routingMark, tcpConcurrent, ipv6, keepAlive } = config.general;
  const exits = new Exits({ interfaceName, routingMark, egress, tcpConcurrent, ipv6, keepAlive });
  const trust = await openTrust(config.tls.customCertifactes, files, "tls.custom-certifactes");
  const lists = undo.use(
    await Lists.open(config, previous?.lists ?? null, { host, health, exits, trust, onRuleList }),
  );
  const { scope, countryOf } = lists;
  const fakeIps = config.profile.storeFakeIp ? new FakeIpStore(cache) : null;
  const persist: PersistFakeIp | null = fakeIps === null ? null : (batch) => fakeIps.add(batch);
  const names = undo.use(
    await openNames(config, {
      exits,
      egress,
      sets: nameSets(scope),
      countryOf,
      persist,
      observer: () => host.kernelDirect.observer,
      log,
      trust,
    }),
  );
  const choices = config.profile.storeSelected ? cache : host.choices;
  const outbounds = undo.use(
    await openOutbounds(config, {
      ...names,
      choices,
      health,
      providers: lists.proxyProviders.all,
      files,
      egress,
      log,
      nowMs: host.clock.nowMs,
      trust,
    }),
  );
  await lists.loadNodes(previous?.lists ?? null, outbounds);
  const router = openRouter({
    ...openRules(config, scope),
    mode,
    outbound: (name) => outbounds.all.get(name) ?? null,
    global: outbounds.global,
    direct: outbounds.direct,
    resolver: names.resolver,
    processes: openProcessLookup(bytesOfIp),
    findProcessMode: config.general.findProcessMode,
    prepare: ({ destination }, sniffed) => routable(names.prepare(destination), sniffed),
    nowMs: Date.now,
  });
  exits.bind({ outbounds: outbounds.all, router });
  const way = exits.through(config.ntp.dialerProxy || "DIRECT");
  const timeKeeper = undo.use(new TimeKeeper({ options: config.ntp, dialer: way, clock: host.clock, log }));
  const direct = openDirectDialer({
    resolver: names.directResolver,
    interfaceName,
    routingMark,
    egress,
    ipv6,
    keepAlive,
  });
  const inbounds = await Inbounds.open(config, previous?.inbounds ?? null, {
    sockets,
    live: host.live,
    accept,
    files,
    dialer: direct,
    log,
    nowMs: host.clock.nowMs,
    tolerant,
  });
  await using opened = new AsyncDisposableStack();
  opened.defer(() => inbounds.abandon());
  const dnsLeases = await openDnsListener(config, names, inbounds.claims, { host, tolerant });
  opened.use(dnsLeases);
  const tuns = opened.use(await changeTuns(config, lists));
  await adopt(config, inbounds);
  opened.move();
  return { config, outbounds, router, inbounds, names, fakeIps, lists, trust, dnsLeases, tuns, timeKeeper };
}

/** The server of `dns.listen`; a book without leases where there is none. */
async function openDnsListener(
  { dns: { enable, listen, listenRoutingMark: mark } }: Config,
  { dns }: Names,
  claims: Set<string>,
  { host, tolerant }: Pick<RuntimeEnv, "host" | "tolerant">,
): Promise<LeaseBook> {
  const ip = listen === null ? null : listen.host === "" ? ANY_V6 : parseIp(listen.host);
  const hosts = ip === null ? [] : [ip];
  const book = new LeaseBook(host.sockets, {
    owner: "dns.listen",
    hosts,
    ports: [listen?.port ?? 0],
    claims,
    ...(mark === 0 ? {} : { configure: (fd: number) => markDescriptor(fd, mark) }),
  });
  if (!enable || dns === null || hosts.length === 0) return book;
  try {
    await openDnsServer({
      listenTcp: (on) => book.listenTcp(on),
      listenUdp: (on) => book.listenUdp(on),
      log: host.log,
      handle: (message, by) => dns.handle(message, by),
    });
    return book;
  } catch (error) {
    await book[Symbol.asyncDispose]();
    if (!tolerant) throw new Error(`dns.listen: ${messageOf(error)}`, { cause: error });
    host.log.error(`dns.listen: ${messageOf(error)}`);
    return book;
  }
}
