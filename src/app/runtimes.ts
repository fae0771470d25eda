/** The runtime in force, those before it that still carry sessions, and the way from one to the next. */
import type { Config } from "#config/config.ts";
import { ApiError, messageOf } from "#core/errors.ts";
import type { Health } from "#core/group.ts";
import type { LogLevel } from "#core/log.ts";
import type { Ip, Session } from "#core/session.ts";
import { prepareTrafficControl } from "#governance/traffic-control.ts";
import type { Host } from "#host/host.ts";
import { DelayBook } from "#net/dial/delay-book.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { FormerInbounds } from "#runtime/former-inbounds.ts";
import { takeFakes } from "#runtime/handed-fakes.ts";
import { openHealth } from "#runtime/health.ts";
import { inForce, type InForce } from "#runtime/in-force.ts";
import { Runtime } from "#runtime/runtime.ts";
import { Tuns } from "#runtime/tuns.ts";
import { journalSettings } from "#runtime/user-settings.ts";
import { askedBy, Certificates } from "./certificates.ts";
import { RuntimeReports } from "./runtime-reports.ts";
import { UserAdoption } from "./user-adoption.ts";

export interface RuntimesEnv {
  readonly host: Host;
  /** Runs a change when the one before has ended. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
}

/** The fake address of a name that the process before is asked for; null: it gets none. Rejects where it gets none now. */
export type AllocateFake = (family: 4 | 6, host: string) => Promise<Ip | null>;

/** Resolves when what another process has is this one's, with what is called when this one serves. */
export type TakeOver = (allocate: AllocateFake) => Promise<() => void>;

export interface SwapOptions {
  /** The change is about something else, and the policies may have come by the API. */
  readonly keepPolicies?: boolean;
  /** False: the change is about something else, and a TUN that could not be opened is not tried again. */
  readonly asksTuns?: boolean;
  /** As `Runtimes.start` has it. */
  readonly takesOver?: TakeOver | undefined;
}

/** What the Controller can switch without another runtime. */
export interface Choices {
  readonly mode: Config["mode"];
  readonly logLevel: LogLevel;
  readonly unifiedDelay: boolean;
}

const DELAYS_GATHER_MS = 20;

export class Runtimes {
  readonly tuns: Tuns;
  readonly health: Health;
  readonly reports: RuntimeReports;
  readonly #host: Host;
  readonly #delays = new DelayBook(Date.now, () => this.#onDelays());
  /** Delays were measured, and are looked at in a moment. */
  #isMeasured = false;
  readonly #certificates: Certificates;
  readonly #users: UserAdoption;
  readonly #inForce: InForce = inForce(() => this.#present);
  /** Null before the first. */
  #present: Runtime | null = null;
  /** The present one last, before it those that still have sessions. */
  readonly #alive = new Set<Runtime>();
  readonly #former = new FormerInbounds();
  readonly #retiring = new Set<Promise<void>>();
  #mode: Config["mode"] = "rule";
  #unifiedDelay = false;

  constructor({ host, exclusively }: RuntimesEnv) {
    this.#host = host;
    const runtime = () => this.#present;
    const settings = () => ({
      unified: this.#unifiedDelay,
      trust: this.#present?.trust ?? DEFAULT_TRUST, // groups test while the first one opens
    });
    this.health = openHealth(this.#delays, settings, host.log, host.journal.sinks);
    this.reports = new RuntimeReports({ files: host.files, events: host.journal.sinks, runtime });
    this.#certificates = new Certificates({ host, runtime });
    this.tuns = new Tuns({
      runtime,
      inForce: this.#inForce,
      accept: this.#accept,
      egress: host.egress,
      learning: host.kernelDirect,
      log: host.log,
      inherited: host.inherited,
      onDnsSettled: () => host.memoryRelease.soon(),
    });
    this.#users = new UserAdoption({
      host,
      present: () => this.present,
      everywhere: () => [
        ...[...this.#alive].flatMap(({ inbounds }) => inbounds.managed),
        ...this.#former.managed,
      ],
      exclusively,
    });
  }

  /** Throws before the first is in force. */
  get present(): Runtime {
    if (this.#present === null) throw new Error("no configuration is in force yet");
    return this.#present;
  }

  get choices(): Choices {
    return { mode: this.#mode, logLevel: this.#host.log.level, unifiedDelay: this.#unifiedDelay };
  }

  /**
   * Puts the first one in force: a TUN, listener or file that cannot be opened is logged, and the others run. With
   * `takesOver` all of it is opened or none, and it comes into force once that resolves, with what is called when it is.
   */
  async start(config: Config, takesOver?: TakeOver): Promise<void> {
    this.tuns.prepare(config);
    const tolerant = takesOver === undefined;
    await this.reports.report("start", () => this.#swap(config, tolerant, { takesOver }));
  }

  /** Rejects with nothing changed. */
  replace(config: Config): Promise<void> {
    return this.#swap(config, false);
  }

  /** The same; rejects with `ApiError` 500: the configuration is good but could not be put in force. */
  async apply(config: Config, how: SwapOptions = {}): Promise<void> {
    try {
      await this.#swap(config, false, how);
    } catch (error) {
      throw new ApiError(500, messageOf(error), { cause: error });
    }
  }

  /** Puts the mode, the level of the log and `unified-delay` of `config` in force, and nothing else of it. */
  choose(config: Config): void {
    this.#mode = config.mode;
    this.#unifiedDelay = config.general.unifiedDelay;
    this.#host.log.level = config.logLevel;
    this.#host.invalidateRoutes();
    const { outbounds, lists } = this.present;
    const provided = lists.proxyProviders.nodeNames();
    this.#delays.prune((node) => outbounds.all.has(node) || provided.has(node));
  }

  /** Many results come together. */
  #onDelays(): void {
    if (this.#isMeasured) return;
    this.#isMeasured = true;
    setTimeout(() => {
      this.#isMeasured = false;
      this.#host.relayPath.checkDecisions();
    }, DELAYS_GATHER_MS).unref();
  }

  readonly #accept = (session: Session): void => this.present.serve(session);

  readonly #allocateFake: AllocateFake = async (family, name) =>
    (await this.present.names.dns?.fakeIp?.allocate(family, name)) ?? null;

  /** Builds beside, then swaps in one turn of the event loop. Throws with nothing changed. */
  async #swap(
    config: Config,
    tolerant: boolean,
    { keepPolicies = false, asksTuns = true, takesOver }: SwapOptions = {},
  ): Promise<void> {
    const host = this.#host;
    const journal = journalSettings(config, host.files);
    using undo = new DisposableStack();
    const policies = keepPolicies
      ? null
      : await prepareTrafficControl(host, config.trafficControl, { tolerant });
    undo.defer(() => policies?.abandon());
    const asked = askedBy(config);
    await this.#certificates.prepare(asked).catch((error: unknown) => {
      if (!tolerant) throw error;
      host.log.error(messageOf(error));
    });
    await host.kernelDirect.suspend(); // the kernel must not act on rules that are about to change
    undo.defer(() => host.kernelDirect.use(this.#present?.classifier ?? null));
    const fresh = await Runtime.open(config, this.#present, {
      host,
      health: this.health,
      mode: () => this.#mode,
      accept: this.#accept,
      inForce: this.#inForce,
      changeTuns: (next, lists) => this.tuns.change(next, lists, { tolerant, retries: asksTuns }),
      onRuleList: () => void this.tuns.updateSets(),
      adopt: (next, inbounds) => this.#users.adopt(next, inbounds, tolerant),
      tolerant,
    });
    const onStarted = await takesOver?.(this.#allocateFake);
    if (onStarted !== undefined) takeFakes(fresh.names.dns, host.inherited);
    const old = this.#present; // in no closure: those that `fresh` keeps would hold it in memory
    this.#present = fresh;
    this.#alive.add(fresh);
    this.choose(config);
    undo.move();
    policies?.activate();
    fresh.activate();
    if (onStarted !== undefined) void this.tuns.settled().then(onStarted);
    for (const each of this.#alive) if (each !== fresh) this.#users.closeRemoved(each.inbounds, fresh);
    this.#users.closeRemoved(this.#former, fresh);
    host.kernelDirect.use(fresh.classifier);
    this.#certificates.use(asked);
    if (old !== null) this.#retire(old, fresh);
    await host.journal.adopt(journal, this.reports.running);
  }

  #retire(old: Runtime, next: Runtime): void {
    const leaving = old.inbounds.leaving(next.inbounds);
    const retired = old.retire(next).catch((error: unknown) => {
      this.#host.log.error(`closing the old configuration: ${messageOf(error)}`);
    });
    this.#retiring.add(retired);
    void retired.finally(() => {
      this.#retiring.delete(retired);
      this.#alive.delete(old);
      this.#former.add(leaving);
      this.#host.memoryRelease.soon();
    });
  }

  /** Looks neither for users nor at certificates any more; what is in force serves on. */
  stopLooking(): void {
    void this.#certificates[Symbol.asyncDispose](); // never rejects
    this.#users[Symbol.dispose]();
    this.reports[Symbol.dispose]();
  }

  /** Stops listening; settles when then `isLeft` has settled and the last session, of older ones too, has ended. */
  async retire(isLeft: () => Promise<void>): Promise<void> {
    await Promise.all([this.#present?.retire(null, isLeft), ...this.#retiring]);
  }
}
