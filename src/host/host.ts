import { join } from "node:path";
import { ChallengeBook } from "#acme/challenge-book.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Choices } from "#core/group.ts";
import type { HostMemory } from "#core/host-memory.ts";
import type { Ledger } from "#core/meter.ts";
import type { Neighbours } from "#core/neighbours.ts";
import type { TlsProvider } from "#core/tls.ts";
import { Slices } from "#core/slices.ts";
import { NameTables } from "#lib/name-table.ts";
import { BackendChoice, type RelaySettings } from "#dataplane/backend-choice.ts";
import { systemClock } from "#governance/clock.ts";
import { Governance } from "#governance/governance.ts";
import { PortalSlot } from "#governance/portal-slot.ts";
import { GovernedLedger } from "#governance/ledger.ts";
import { Egress } from "#net/dial/egress.ts";
import { KernelDirect } from "#kernel-direct/kernel-direct.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { NeighbourTable } from "#net/address/neighbour-table.ts";
import { NetworkClock } from "#net/clock/network-clock.ts";
import { SelfDials } from "#net/dial/self-dials.ts";
import { InheritedSockets } from "#net/listen/inherited-sockets.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import { openBootClock } from "#platform/boot-clock.ts";
import { MemoryRelease } from "#platform/memory-release.ts";
import { optimizeSooner } from "#platform/optimize-sooner.ts";
import { openOtherSockets, openProcessLookup } from "#platform/process.ts";
import { Journal } from "#journal/journal.ts";
import { TlsLibrary } from "#platform/tls.ts";
import type { ProcessLookup } from "#platform/process-lookup.ts";
import { KeptByHost } from "#protocols/crypto/kept-by-host.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { clientForms } from "#protocols/share-links/index.ts";
import { DatagramBudget } from "#dataplane/udp/limits.ts";
import { LiveTable } from "#dataplane/connections.ts";
import { LoopDetector } from "#dataplane/loop-detector.ts";
import { RateMeter } from "#dataplane/rates.ts";
import { startReaper } from "#dataplane/reaper.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";
import { foreignSelections } from "#store/foreign-choices.ts";
import { MemoryChoices } from "#store/memory-choices.ts";
import { OpenStores } from "#store/open-stores.ts";
import { ProfileCache } from "#store/profile-cache.ts";
import { DocumentReader } from "#documents/reader.ts";
import { QuicThreadsSlot } from "#transport/thread-slot.ts";
import { makeTlsProvider } from "#transport/tls/provider.ts";
import { Users } from "#users/users.ts";
import { CACHE_FILE, FOREIGN_CACHE_FILE } from "./file-guard.ts";
import { governanceStore } from "./governance-store.ts";
import { LeaseFiles } from "./lease-files.ts";
import type { LogHub } from "./log.ts";

/** What outlives a reload: listening sockets, the table of connections, the ledger, choices, the log. */
export interface Host extends Disposable {
  /** Absolute path of the home directory; it need not exist. */
  readonly home: string;
  readonly log: LogHub;
  readonly files: SafeFiles;
  readonly sockets: SocketPool;
  /** Sockets of the process before that are still to be listened by. */
  readonly inherited: InheritedSockets;
  /** What a running TUN demands of every socket that leaves. */
  readonly egress: Egress;
  readonly live: LiveTable;
  /** For protocols that compare clocks with their peer. */
  readonly clock: NetworkClock;
  /** What listeners remember of their clients, against replays. */
  readonly memory: HostMemory;
  /** Every session has a meter of it, so that policies can be switched on at any time. */
  readonly ledger: GovernedLedger;
  readonly governance: Governance;
  readonly portals: PortalSlot;
  /** What sessions are metered by: the ledger, with every byte of a managed user counted, too. */
  readonly metering: Ledger;
  readonly users: Users;
  /** Tokens and the audit log. */
  readonly journal: Journal;
  /** Every store of these that is open. */
  readonly stores: OpenStores;
  readonly cache: ProfileCache;
  /** Takes the place of the cache's where `profile.store-selected` is false. */
  readonly choices: Choices;
  readonly timers: IdleTimers;
  /** The workers that relay plain connections, when the configuration and the system allow it. */
  readonly relayPath: BackendChoice;
  /** TLS, by what the configuration's `relay` allows. */
  readonly tls: Readonly<Record<RelaySettings["relay"], TlsProvider>>;
  /** What TLS listeners show to authorities that validate names by TLS-ALPN-01. */
  readonly challenges: ChallengeBook;
  readonly datagrams: DatagramBudget;
  readonly kernelDirect: KernelDirect;
  readonly loops: LoopDetector;
  /** Of all long works of the main thread together. */
  readonly slices: Slices;
  /** What workers know of names; one for each DNS engine at a time. */
  readonly nameTables: NameTables;
  /** Reads large lists in a thread of its own. */
  readonly documents: DocumentReader;
  /** Opened once: functions of the C library are never given back. */
  readonly processes: ProcessLookup;
  readonly neighbours: Neighbours;
  /** What leads to our own listeners. */
  readonly selfDials: SelfDials;
  readonly rates: RateMeter;
  /** To be asked for where much was given up at once, as at the end of a runtime. */
  readonly memoryRelease: MemoryRelease;
  /** To be called when the mode, a group's selection, policies or the runtime in force has changed, and not rules or lists: workers decide by it from then on. */
  invalidateRoutes(): void;
  /**
   * The one way to change rules, lists, databases or nodes of a running program. `apply` is called once the kernel's sets
   * are empty; what was learnt and cached is dropped in the same turn. Rejects with what `apply` throws.
   */
  changeRouting(apply: () => void): Promise<void>;
}

export interface HostOptions {
  /** For tests, see dataplane/workers/shared/seams.ts. */
  readonly seams?: SharedArrayBuffer | undefined;
  /** What the process before has handed over. */
  readonly inherited?: InheritedSockets;
  /** Bytes that it had moved in all. */
  readonly movedBefore?: readonly [upload: number, download: number];
}

export function openHost(
  home: string,
  files: SafeFiles,
  log: LogHub,
  { seams, inherited = new InheritedSockets(), movedBefore = [0, 0] }: HostOptions = {},
): Host {
  const cache = new ProfileCache(join(home, CACHE_FILE), log);
  cache.adopt(foreignSelections(join(home, FOREIGN_CACHE_FILE), log));
  const boot = openBootClock();
  const stores = new OpenStores();
  const openStore = stores.open;
  const journal = new Journal({ log, nowMs: Date.now, monotonicMs: () => performance.now(), openStore });
  const storeFile = (store: string) => governanceStore(files.resolve(store), log, openStore, journal.sinks);
  const slices = new Slices();
  const memoryRelease = new MemoryRelease();
  const kernelDirect = new KernelDirect(log, journal.sinks);
  const onBasis = (): void => relayPath.invalidateDecisions(true);
  const sockets = new SocketPool(onBasis, inherited);
  const tlsLibrary = new TlsLibrary();
  const challenges = new ChallengeBook();
  const onAllDead = (): void => sockets.useThreads(null);
  const beforeCapture = (): void => loops.arm();
  const relayPath = new BackendChoice(log, { tlsLibrary, onAllDead, seams, beforeCapture });
  const invalidateRoutes = (): void => {
    relayPath.invalidateDecisions(true);
    kernelDirect.check();
  };
  const ledger = new GovernedLedger(systemClock(boot), {
    look: (maxAgeMs) => relayPath.look(maxAgeMs),
    onInstall: invalidateRoutes,
    portalLink: (ids) => portals.link(ids),
  });
  const neighbours = new NeighbourTable(log);
  const governance = new Governance({
    ledger,
    log,
    storeFile,
    neighbours,
    leases: new LeaseFiles(files, log),
  });
  const live = new LiveTable({
    look: () => relayPath.look(),
    beforeRead: () => relayPath.sync(),
    onMany: optimizeSooner,
  });
  live.count("upload", movedBefore[0]);
  live.count("download", movedBefore[1]);
  const selfDials: SelfDials = new SelfDials(sockets.listening, {
    onBusy: () => relayPath.holdDecisions(),
    madeFor: (metadata) => loops.madeFor(metadata),
  });
  const loops = new LoopDetector(openOtherSockets(bytesOfIp), {
    onArmed: () => {
      selfDials.noteAll();
      invalidateRoutes();
    },
    findDecided: (near, to) => relayPath.findDecided(near, to),
    mayBeOwn: (ip) => relayPath.mayBeOwn(ip),
  });
  const rates = new RateMeter(live);
  const reaper = startReaper(live, () => kernelDirect.observer !== null);
  const users = new Users({
    log,
    nowMs: Date.now,
    boot,
    live,
    protocols: PROTOCOLS,
    formsOf: clientForms,
    openFleet: async (context) => (await import("#fleet/index.ts")).openFleet(context),
    events: journal.sinks,
    openStore,
  });
  const portals = new PortalSlot({
    log,
    nowSeconds: () => Math.floor(Date.now() / 1000),
    policies: () => governance.status().policies,
    policiesOf: (address) => governance.statusOf(address),
    reportTime: () => governance.reportTime(),
    report: (query) => governance.report(query),
    inherited: ({ host, port }) => inherited.take(`portal ${host}:${port}`)?.fd ?? null,
  });
  const memory = new KeptByHost();
  memory.of(QuicThreadsSlot).start = async () =>
    (await import("./quic-threads.ts")).startQuicThreads(relayPath);
  return {
    home,
    log,
    files,
    sockets,
    inherited,
    egress: new Egress(() => {
      beforeCapture();
      onBasis();
    }),
    live,
    clock: new NetworkClock(),
    memory,
    ledger,
    metering: users.metering(ledger),
    users,
    journal,
    stores,
    governance,
    portals,
    cache,
    choices: new MemoryChoices(),
    timers: new IdleTimers(),
    relayPath,
    challenges,
    tls: {
      auto: makeTlsProvider(() => tlsLibrary.native, { challenges }),
      portable: makeTlsProvider(() => null, { allowsQuic: false, challenges }),
    },
    datagrams: new DatagramBudget(),
    kernelDirect,
    loops,
    slices,
    nameTables: new NameTables(),
    documents: new DocumentReader(slices, () => memoryRelease.soon()),
    processes: openProcessLookup(bytesOfIp),
    neighbours,
    selfDials,
    rates,
    memoryRelease,
    invalidateRoutes,
    async changeRouting(apply) {
      await kernelDirect.beforeRoutingChange();
      try {
        apply();
      } finally {
        relayPath.invalidateDecisions();
        memoryRelease.soon();
      }
    },
    [Symbol.dispose]() {
      reaper[Symbol.dispose]();
      rates[Symbol.dispose]();
      kernelDirect[Symbol.dispose]();
      portals[Symbol.dispose]();
      governance[Symbol.dispose]();
      neighbours[Symbol.dispose]();
      cache[Symbol.dispose]();
    },
  };
}
