import type { Config } from "#config/config.ts";
import type { ConfigsControl, ConfigsPatch, Control } from "#core/control.ts";
import { ApiError, messageOf } from "#core/errors.ts";
import type { Health } from "#core/group.ts";
import type { Inbound } from "#core/inbound.ts";
import type { Session } from "#core/session.ts";
import { configsView } from "#app/control/configs.ts";
import { openControl } from "#app/control/index.ts";
import { ExternalUi } from "#app/control/external-ui.ts";
import { keepPorts } from "#app/control/change.ts";
import { prepareTrafficControl } from "#governance/traffic-control.ts";
import type { Host } from "#host/host.ts";
import { DelayBook } from "#net/dial/delay-book.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { backupSettings, journalSettings } from "#runtime/user-settings.ts";
import { openHealth } from "#runtime/health.ts";
import { inForce, type InForce } from "#runtime/in-force.ts";
import { Runtime } from "#runtime/runtime.ts";
import { TUN_NAME } from "#config/sections/tun.ts";
import { Tuns } from "#runtime/tuns.ts";
import type { ControllerEndpoint } from "#api/open-controller.ts";
import { ConfigKeeper } from "./config-keeper.ts";
import { ControllerSlot } from "./controller-slot.ts";
import { RuntimeReports } from "./runtime-reports.ts";
import { TimedBackups } from "./timed-backups.ts";
import { UserAdoption } from "./user-adoption.ts";
import { loadConfig, type ConfigInput } from "./load-config.ts";

export interface AppEnv extends ConfigInput {
  readonly host: Host;
  restart(): void;
}

interface SwapOptions {
  /** The change is about something else, and the policies may have come by the API. */
  readonly keepPolicies?: boolean;
  /** False: the change is about something else, and a TUN that could not be opened is not tried again. */
  readonly asksTuns?: boolean;
}

/** The running program: the host, the runtime in force, the Controller. */
export class App implements AsyncDisposable {
  readonly #env: AppEnv;
  readonly #health: Health;
  readonly #delays = new DelayBook();
  readonly #controller: ControllerSlot;
  readonly #keeper: ConfigKeeper;
  readonly #externalUi: ExternalUi;
  readonly control: Control;
  readonly #backups: TimedBackups;
  readonly #tuns: Tuns;
  readonly #inForce: InForce = inForce(() => this.#runtime ?? null);
  readonly #users: UserAdoption;
  readonly #reports: RuntimeReports;
  readonly #retiring = new Set<Promise<void>>();
  #runtime!: Runtime;
  /** The present one last, before it those that still have sessions. */
  readonly #alive = new Set<Runtime>();
  #mode: Config["mode"] = "rule";
  #unifiedDelay = false;
  /** Changes run one after the other. */
  #queue: Promise<void> = Promise.resolve();
  /** Nothing changes any more: a reload behind the end would listen again. */
  #closing = false;

  private constructor(env: AppEnv) {
    this.#env = env;
    const settings = () => ({
      unified: this.#unifiedDelay,
      trust: (this.#runtime as Runtime | undefined)?.trust ?? DEFAULT_TRUST, // groups test while the first one opens
    });
    this.#health = openHealth(this.#delays, settings, env.host.journal.sinks);
    this.#reports = new RuntimeReports({
      files: env.host.files,
      events: env.host.journal.sinks,
      runtime: () => this.#runtime ?? null,
    });
    this.#keeper = new ConfigKeeper({
      input: env,
      loader: env.loader,
      log: env.host.log,
      exclusively: (work) => this.#exclusively(work),
      apply: (config) => this.#reports.report("edit", () => this.#apply(config)),
      reload: () => this.#readAgain(),
      settle: () => this.#exclusively(() => this.#settle()).catch(() => {}), // the program ends
    });
    this.control = openControl({
      host: env.host,
      loader: env.loader,
      exclusively: (work) => this.#exclusively(work),
      health: this.#health,
      configs: this.#configs(),
      configFile: this.#keeper,
      runtime: () => this.#runtime,
      upgradeUi: () => this.#externalUi.update(),
      restart: () => env.restart(),
    });
    this.#backups = new TimedBackups({
      settings: () => backupSettings(this.#runtime.config, env.host.files),
      backup: this.control.backup,
      log: env.host.log,
    });
    this.#externalUi = new ExternalUi({
      host: env.host,
      config: () => this.#runtime.config,
      dialer: () => this.#runtime.outbounds.direct,
      trust: () => this.#runtime.trust,
    });
    this.#controller = new ControllerSlot(this.control, env.host);
    this.#tuns = new Tuns({
      runtime: () => this.#runtime ?? null,
      inForce: this.#inForce,
      accept: this.#accept,
      egress: env.host.egress,
      learning: env.host.kernelDirect,
      log: env.host.log,
      onDnsSettled: () => env.host.memoryRelease.soon(),
    });
    this.#users = new UserAdoption({
      host: env.host,
      present: () => this.#runtime,
      everywhere: () => [...this.#alive].flatMap((runtime) => runtime.inbounds.managed),
      exclusively: (work) => this.#exclusively(work),
    });
  }

  /** Starts with a configuration that has passed all checks. Ports that cannot be bound are logged; the others run. */
  static async start(config: Config, env: AppEnv): Promise<App> {
    const app = new App(env);
    const first = env.override(config);
    app.#tuns.prepare(first);
    await app.#reports.report("start", () => app.#swap(first, true));
    await app.#settle();
    void app.#backups.look(Date.now());
    return app;
  }

  get config(): Config {
    return this.#runtime.config;
  }

  get inbounds(): readonly Inbound[] {
    return this.#runtime.inbounds.all;
  }

  get controllerEndpoints(): readonly ControllerEndpoint[] {
    return this.#controller.endpoints;
  }

  /** Reads the source again, as SIGHUP asks. Throws with nothing changed. */
  reload(): Promise<void> {
    return this.#exclusively(() => this.#readAgain());
  }

  async #readAgain(): Promise<void> {
    await this.#reports.report("file", async () =>
      this.#swap(await loadConfig({ kind: "current" }, this.#env), false),
    );
    this.#keeper.forget();
    await this.#settle();
  }

  /** What follows the configuration besides the runtime. */
  async #settle(): Promise<void> {
    await this.#controller.apply(this.#runtime.config);
    void this.#externalUi.fetchIfMissing();
  }

  /** Stops listening, gives sessions `drainMs` to end by themselves, closes the others, and leaves nothing behind. */
  async close(drainMs: number, { restarting = false } = {}): Promise<void> {
    const closed = this.#exclusively(async () => {
      const { live, sockets } = this.#env.host;
      using last = new DisposableStack();
      last.defer(() => this.#env.host.journal.close()); // behind what it is told of the end
      last.defer(() => this.#env.host.users.close()); // the last byte has been counted by then, whatever else fails
      await this.#tuns.close({ restarting }); // before the listeners close: captured traffic goes past weir again, or nowhere
      const retired = Promise.all([this.#runtime.retire(null), ...this.#retiring]);
      const cutOff = (): void => {
        live.closeAll();
        sockets.cutOff(); // clients in a handshake and UDP associations are no sessions to wait for
      };
      const timer = setTimeout(cutOff, live.size === 0 ? 0 : drainMs);
      await this.#externalUi[Symbol.asyncDispose]();
      await this.#controller[Symbol.asyncDispose]();
      await retired;
      clearTimeout(timer);
      cutOff();
      await this.#env.host.relayPath[Symbol.asyncDispose]();
      await this.#env.host.users.leaveFleet();
    });
    this.#closing = true;
    this.#env.loader.stop(); // a reload that only begins must not hold up the end
    this.#users[Symbol.dispose]();
    this.#keeper[Symbol.dispose]();
    this.#backups[Symbol.dispose]();
    this.#reports[Symbol.dispose]();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close(0);
  }

  readonly #accept = (session: Session): void => this.#runtime.serve(session);

  /** Builds beside, then swaps in one turn of the event loop. Throws with nothing changed. */
  async #swap(
    config: Config,
    tolerant: boolean,
    { keepPolicies = false, asksTuns = true }: SwapOptions = {},
  ): Promise<void> {
    const { host } = this.#env;
    using undo = new DisposableStack();
    const policies = keepPolicies
      ? null
      : await prepareTrafficControl(host, config.trafficControl, { tolerant });
    undo.defer(() => policies?.abandon());
    await host.kernelDirect.suspend(); // the kernel must not act on rules that are about to change
    undo.defer(() => host.kernelDirect.use(this.#runtime?.classifier ?? null));
    const fresh = await Runtime.open(config, this.#runtime ?? null, {
      host,
      health: this.#health,
      mode: () => this.#mode,
      accept: this.#accept,
      inForce: this.#inForce,
      changeTuns: (next, lists) => this.#tuns.change(next, lists, { tolerant, retries: asksTuns }),
      onRuleList: () => void this.#tuns.updateSets(),
      adopt: (next, inbounds) => this.#users.adopt(next, inbounds, tolerant),
      tolerant,
    });
    const old: Runtime | undefined = this.#runtime;
    this.#runtime = fresh;
    this.#alive.add(fresh);
    this.#takeChoices(config);
    undo.move();
    policies?.activate();
    fresh.activate();
    for (const each of this.#alive) if (each !== fresh) this.#users.closeRemoved(each, fresh);
    host.kernelDirect.use(fresh.classifier);
    if (old !== undefined) this.#retire(old, fresh);
    await host.journal.adopt(journalSettings(config, host.files), this.#reports.running);
  }

  #takeChoices(config: Config): void {
    this.#mode = config.mode;
    this.#unifiedDelay = config.general.unifiedDelay;
    this.#env.host.log.level = config.logLevel;
    this.#env.host.invalidateRoutes();
    const { outbounds, lists } = this.#runtime;
    const provided = lists.proxyProviders.nodeNames();
    this.#delays.prune((node) => outbounds.all.has(node) || provided.has(node));
  }

  #retire(old: Runtime, next: Runtime): void {
    const retired = old.retire(next).catch((error: unknown) => {
      this.#env.host.log.error(`closing the old configuration: ${messageOf(error)}`);
    });
    this.#retiring.add(retired);
    void retired.finally(() => {
      this.#retiring.delete(retired);
      this.#alive.delete(old);
      this.#env.host.memoryRelease.soon();
    });
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(new ApiError(503, "weir is shutting down"));
    const done = this.#queue.then(work);
    const nothing = (): void => {}; // neither answer nor error is kept: the caller has them
    this.#queue = done.then(nothing, nothing);
    return done;
  }

  #configs(): ConfigsControl {
    return {
      view: () => {
        const tunDevice = this.#tuns.get(TUN_NAME)?.device ?? null;
        const live = {
          mode: this.#mode,
          logLevel: this.#env.host.log.level,
          unifiedDelay: this.#unifiedDelay,
          tunDevice,
        };
        return configsView(this.#runtime.config, live, this.#runtime.inbounds.all);
      },
      patch: (fragment) => this.#exclusively(() => this.#patch(fragment)),
      replace: (source, { force }) =>
        this.#exclusively(async () => {
          await this.#reports.report(source.kind === "current" ? "file" : source.kind, async () => {
            const config = await loadConfig(source, this.#env);
            await this.#apply(force ? config : keepPorts(config, this.#runtime.config));
          });
          this.#keeper.forget();
        }),
    };
  }

  /** Switches take effect at once; everything else is a configuration like the present one, built and swapped. */
  async #patch(fragment: ConfigsPatch): Promise<void> {
    const {
      mode = this.#mode,
      logLevel = this.#env.host.log.level,
      unifiedDelay = this.#unifiedDelay,
      ...rest
    } = fragment;
    const base: Config = { ...this.#runtime.config, mode, logLevel };
    const config = { ...base, general: { ...base.general, unifiedDelay } };
    if (Object.keys(rest).length > 0)
      await this.#reports.report("patch", async () =>
        this.#apply(this.#env.loader.patched(config, rest), {
          keepPolicies: true,
          asksTuns: rest.tun !== undefined,
        }),
      );
    else this.#takeChoices(config);
  }

  /** Throws `ApiError` 500 where the configuration is good but could not be put in force. */
  async #apply(config: Config, how: SwapOptions = {}): Promise<void> {
    try {
      await this.#swap(config, false, how);
    } catch (error) {
      throw new ApiError(500, messageOf(error), { cause: error });
    }
  }
}
