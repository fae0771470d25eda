import { formatDiagnostic } from "#config/report.ts";
import type { ParseResult } from "#config/parse.ts";
import type { Config } from "#config/config.ts";
import type { ConfigsControl, ConfigsPatch, ConfigSource, Control } from "#core/control.ts";
import { ApiError, ConfigError, messageOf } from "#core/errors.ts";
import type { Health } from "#core/group.ts";
import type { Inbound } from "#core/inbound.ts";
import type { LogLevel } from "#core/log.ts";
import type { Session } from "#core/session.ts";
import { configsView } from "#control/configs.ts";
import { openControl } from "#control/index.ts";
import { ExternalUi } from "#control/external-ui.ts";
import { keepPorts } from "#control/change.ts";
import type { Host } from "#host.ts";
import { DelayBook } from "#net/delay-book.ts";
import { openHealth } from "#runtime/health.ts";
import { Runtime } from "#runtime/runtime.ts";
import { unbuilt } from "#runtime/unbuilt.ts";
import { ControllerSlot } from "./controller-slot.ts";

/** Where configurations come from. `file` is what messages call it. */
export interface Loader {
  /** The source that the program was started with, read anew. */
  current(): Loaded;
  path(path: string): Loaded;
  text(text: string): Loaded;
  /** The configuration with the settings of a fragment. Throws `ConfigError`. */
  patched(config: Config, fragment: ConfigsPatch): Config;
}

export interface Loaded {
  readonly file: string;
  readonly result: ParseResult;
}

export interface AppEnv {
  readonly host: Host;
  readonly loader: Loader;
  /** What the command line puts over the file's Controller keys. */
  readonly override: (config: Config) => Config;
  restart(): void;
}

/** The running program: the host, the runtime in force, the Controller. */
export class App implements AsyncDisposable {
  readonly #env: AppEnv;
  readonly #health: Health;
  readonly #delays = new DelayBook();
  readonly #controller: ControllerSlot;
  readonly #externalUi: ExternalUi;
  readonly control: Control;
  readonly #retiring = new Set<Promise<void>>();
  #runtime!: Runtime;
  #mode: Config["mode"] = "rule";
  #unifiedDelay = false;
  /** Changes run one after the other. */
  #queue: Promise<unknown> = Promise.resolve();
  /** Nothing changes any more: a reload behind the end would listen again. */
  #closing = false;

  private constructor(env: AppEnv) {
    this.#env = env;
    this.#health = openHealth(this.#delays, () => this.#unifiedDelay);
    this.control = openControl({
      host: env.host,
      health: this.#health,
      configs: this.#configs(),
      runtime: () => this.#runtime,
      upgradeUi: () => this.#externalUi.update(),
      restart: () => env.restart(),
    });
    this.#externalUi = new ExternalUi({
      host: env.host,
      config: () => this.#runtime.config,
      dialer: () => this.#runtime.outbounds.direct,
    });
    this.#controller = new ControllerSlot(this.control, env.host);
  }

  /** Starts with a configuration that was found good. Ports that cannot be bound are logged; the rest runs. */
  static async start(config: Config, env: AppEnv): Promise<App> {
    const app = new App(env);
    await app.#swap(env.override(config), true);
    await app.#controller.apply(app.#runtime.config);
    void app.#externalUi.fetchIfMissing();
    return app;
  }

  get config(): Config {
    return this.#runtime.config;
  }

  get inbounds(): readonly Inbound[] {
    return this.#runtime.inbounds.all;
  }

  /** Reads the source again, as SIGHUP asks. Throws with nothing changed. */
  reload(): Promise<void> {
    return this.#exclusively(async () => {
      await this.#swap(this.#load({ kind: "current" }), false);
      await this.#controller.apply(this.#runtime.config);
      void this.#externalUi.fetchIfMissing();
    });
  }

  /** Stops listening, gives sessions `drainMs` to end by themselves, closes the rest, and leaves nothing behind. */
  async close(drainMs: number): Promise<void> {
    const closed = this.#exclusively(async () => {
      const { live, sockets } = this.#env.host;
      const retired = Promise.all([this.#runtime.retire(null), ...this.#retiring]);
      const cutOff = (): void => {
        live.closeAll();
        sockets.cutOff(); // clients in a handshake and UDP associations are no sessions that anybody waits for
      };
      const timer = setTimeout(cutOff, live.size === 0 ? 0 : drainMs);
      await this.#externalUi[Symbol.asyncDispose]();
      await this.#controller[Symbol.asyncDispose]();
      await retired;
      clearTimeout(timer);
      cutOff();
    });
    this.#closing = true;
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close(0);
  }

  readonly #accept = (session: Session): void => this.#runtime.serve(session);

  /** Builds beside, then swaps in one turn of the event loop. Throws with nothing changed. */
  async #swap(config: Config, tolerant: boolean): Promise<void> {
    const { host } = this.#env;
    const fresh = await Runtime.open(config, this.#runtime ?? null, {
      host,
      health: this.#health,
      mode: () => this.#mode,
      accept: this.#accept,
      tolerant,
    });
    const old: Runtime | undefined = this.#runtime;
    this.#runtime = fresh;
    this.#takeChoices(config);
    fresh.activate();
    for (const text of unbuilt(config)) host.log.warning(text);
    if (old !== undefined) this.#retire(old, fresh);
  }

  #takeChoices(config: Config): void {
    this.#mode = config.mode;
    this.#unifiedDelay = config.general.unifiedDelay;
    this.#env.host.log.level = config.logLevel;
    const { outbounds, lists } = this.#runtime;
    this.#delays.prune((node) => outbounds.all.has(node) || lists.proxyProviders.has(node));
  }

  #retire(old: Runtime, next: Runtime): void {
    const retired = old.retire(next).catch((error: unknown) => {
      this.#env.host.log.error(`closing the old configuration: ${messageOf(error)}`);
    });
    this.#retiring.add(retired);
    void retired.finally(() => this.#retiring.delete(retired));
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(new ApiError(503, "weir is shutting down"));
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined); // the caller has it
    return done;
  }

  /** Throws `ConfigError` with every error of the text. */
  #load(source: ConfigSource): Config {
    const { loader, override, host } = this.#env;
    const { file, result } =
      source.kind === "current"
        ? loader.current()
        : source.kind === "path"
          ? loader.path(source.path)
          : loader.text(source.text);
    if (result.errors !== undefined)
      throw new ConfigError(result.errors.map((error) => formatDiagnostic(file, error)).join("\n"));
    for (const warning of result.warnings) host.log.warning(formatDiagnostic(file, warning));
    return override(result.config);
  }

  #configs(): ConfigsControl {
    return {
      view: () => configsView(this.#runtime.config, this.#live(), this.#runtime.inbounds.all),
      patch: (fragment) => this.#exclusively(() => this.#patch(fragment)),
      replace: (source, { force }) =>
        this.#exclusively(async () => {
          const config = this.#load(source);
          await this.#apply(force ? config : keepPorts(config, this.#runtime.config));
        }),
    };
  }

  #live(): { mode: Config["mode"]; logLevel: LogLevel; unifiedDelay: boolean } {
    return { mode: this.#mode, logLevel: this.#env.host.log.level, unifiedDelay: this.#unifiedDelay };
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
    if (Object.keys(rest).length > 0) await this.#apply(this.#env.loader.patched(config, rest));
    else this.#takeChoices(config);
  }

  /** Throws `ApiError` 500 where the configuration is good but could not be put in force. */
  async #apply(config: Config): Promise<void> {
    try {
      await this.#swap(config, false);
    } catch (error) {
      throw new ApiError(500, messageOf(error), { cause: error });
    }
  }
}
