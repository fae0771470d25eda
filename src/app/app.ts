import type { Config } from "#config/config.ts";
import type { Control } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";
import type { Inbound } from "#core/inbound.ts";
import type { AllocateElsewhere } from "#dns/journaled-pool.ts";
import type { ControllerEndpoint } from "#api/open-controller.ts";
import { openControl } from "#app/control/index.ts";
import { ExternalUi } from "#app/control/external-ui.ts";
import { liveConfigs } from "#app/control/live-configs.ts";
import type { Host } from "#host/host.ts";
import type { HandedState, ListeningSocket } from "#net/listen/inherited-sockets.ts";
import type { DnsAddress } from "#runtime/dns-listener.ts";
import { backupSettings } from "#runtime/user-settings.ts";
import { giveFakes } from "#runtime/handed-fakes.ts";
import { ConfigKeeper } from "./config-keeper.ts";
import { ControllerSlot } from "./controller-slot.ts";
import { loadConfig, type ConfigInput } from "./load-config.ts";
import { Runtimes, type TakeOver } from "./runtimes.ts";
import { TimedBackups } from "./timed-backups.ts";
import { Updates, type ProgramUpdates } from "./updates.ts";

export interface AppEnv extends ConfigInput {
  readonly host: Host;
  restart(): void;
  /** Absent: no other program can take this process's place. */
  readonly updates?: ProgramUpdates;
  /**
   * The first configuration comes into force in place of another process's: in full or not at all, and only once this
   * resolves, with what is called when it is. Absent: whatever can be opened runs.
   */
  readonly takesOver?: TakeOver | undefined;
}

interface Ending {
  readonly restarting?: boolean;
  /** Called when nothing more is counted, before the books are closed; must not reject. */
  readonly onCounted?: () => Promise<void>;
}

const ENDING = new ApiError(503, "weir is shutting down");

/** The running program: the host, the runtime in force, the Controller. */
export class App implements AsyncDisposable {
  readonly control: Control;
  readonly #env: AppEnv;
  readonly #runtimes: Runtimes;
  readonly #controller: ControllerSlot;
  readonly #keeper: ConfigKeeper;
  readonly #externalUi: ExternalUi;
  readonly #updates: Updates;
  readonly #backups: TimedBackups;
  /** Changes run one after the other. */
  #queue: Promise<void> = Promise.resolve();
  /** Nothing changes any more: a reload behind the end would listen again. */
  #closing = false;
  /** What was asked for before, and has not begun, is refused, too. */
  #handedOver = false;

  private constructor(env: AppEnv) {
    const { host, loader } = env;
    this.#env = env;
    const exclusively = <T>(work: () => Promise<T>): Promise<T> => this.#exclusively(work);
    const runtimes = new Runtimes({ host, exclusively });
    const runtime = () => runtimes.present;
    this.#runtimes = runtimes;
    this.#keeper = new ConfigKeeper({
      input: env,
      loader,
      log: host.log,
      exclusively,
      present: () => this.config,
      apply: (config) => runtimes.reports.report("edit", () => runtimes.apply(config)),
      reload: () => this.#readAgain(),
      settle: () => exclusively(() => this.#settle()).catch(() => {}), // the program ends
    });
    this.#updates = new Updates({
      host,
      program: env.updates,
      config: () => this.config,
      runtime,
    });
    this.control = openControl({
      host,
      loader,
      exclusively,
      health: runtimes.health,
      configs: liveConfigs({
        input: env,
        runtimes,
        exclusively,
        onReplaced: () => this.#keeper.forget(),
      }),
      configFile: this.#keeper,
      runtime,
      upgradeUi: () => this.#externalUi.update(),
      updates: this.#updates,
      restart: () => env.restart(),
    });
    this.#backups = new TimedBackups({
      settings: () => backupSettings(this.config, host.files),
      backup: this.control.backup,
      log: host.log,
    });
    this.#externalUi = new ExternalUi({
      host,
      config: () => this.config,
      dialer: () => runtime().outbounds.direct,
      trust: () => runtime().trust,
    });
    this.#controller = new ControllerSlot(this.control, host);
  }

  /** Starts with a configuration that has passed all checks. Ports that cannot be bound are logged; the others run. */
  static async start(config: Config, env: AppEnv): Promise<App> {
    const app = new App(env);
    const first = env.override(config);
    await app.#runtimes.start(first, env.takesOver);
    await app.#settle();
    void app.#backups.look(Date.now());
    env.host.memoryRelease.soon();
    return app;
  }

  get config(): Config {
    return this.#runtimes.present.config;
  }

  get inbounds(): readonly Inbound[] {
    return this.#runtimes.present.inbounds.all;
  }

  /** Where clients ask for names. */
  get dnsAddresses(): readonly DnsAddress[] {
    return this.#runtimes.present.dnsAddresses;
  }

  /** The Controller asks for no secret. */
  get isOpen(): boolean {
    return this.#controller.isOpen;
  }

  get controllerEndpoints(): readonly ControllerEndpoint[] {
    return this.#controller.endpoints;
  }

  /** Reads the source again, as SIGHUP asks. Throws with nothing changed. */
  reload(): Promise<void> {
    return this.#exclusively(() => this.#readAgain());
  }

  async #readAgain(): Promise<void> {
    await this.#runtimes.reports.report("file", async () =>
      this.#runtimes.replace(await loadConfig({ kind: "current" }, this.#env)),
    );
    this.#keeper.forget();
    await this.#settle();
  }

  /** What follows the configuration besides the runtime. */
  async #settle(): Promise<void> {
    await this.#controller.apply(this.config);
    void this.#externalUi.fetchIfMissing();
  }

  /** Every socket that is listened by, as `InheritedSockets` of another process takes them. */
  async listening(): Promise<readonly ListeningSocket[]> {
    const { sockets, portals } = this.#env.host;
    const portal = portals.listening;
    const own = portal === null ? [] : [{ key: `portal ${portal.key}`, fd: portal.fd, endpoint: null }];
    const tuns = await this.#runtimes.tuns.handover.handles();
    return [...(await sockets.open()), ...this.#controller.listening, ...own, ...tuns];
  }

  /** Before `pause`: the kernel forwards nothing any more by what was learnt. */
  pauseBypasses(): Promise<void> {
    return this.#runtimes.tuns.handover.pauseBypasses();
  }

  /** Packets wait, and names get fake addresses by `allocate`. Answers with what another process has to know. */
  pause(allocate: AllocateElsewhere): readonly HandedState[] {
    const { tuns, present } = this.#runtimes;
    return [...tuns.handover.pause(), ...giveFakes(present.names.dns, allocate)];
  }

  /** There is no other process. */
  resume(): void {
    const { tuns, present } = this.#runtimes;
    tuns.handover.resume();
    present.names.dns?.fakeIp?.takeBack();
  }

  /** Runs `work` while nothing else changes. Where it answers true another process serves: `close` is all that is left. */
  async handOver(work: () => Promise<boolean>): Promise<boolean> {
    return this.#exclusively(async () => {
      const isDone = await work();
      if (!isDone) return false;
      this.#handedOver = true;
      const { tuns } = this.#runtimes;
      void tuns.handover.leave();
      this.#env.host.sockets.handOver(() => void tuns.close({ restarting: false })); // connections go by its device until then
      this.#controller.handOver();
      this.#env.host.portals[Symbol.dispose](); // a link is good in the process that made it: clients come to the other one's
      return true;
    });
  }

  /** Stops listening, gives sessions `drainMs` to end by themselves, closes the others, and leaves nothing behind. */
  async close(drainMs: number, { restarting = false, onCounted }: Ending = {}): Promise<void> {
    const work = async (): Promise<void> => {
      const { live, sockets } = this.#env.host;
      using last = new DisposableStack();
      last.defer(() => this.#env.host.journal.close()); // behind what it is told of the end
      last.defer(() => this.#env.host.users.close()); // the last byte has been counted by then, whatever else fails
      // Before the listeners close: captured traffic goes past weir again, or nowhere.
      if (!this.#handedOver) await this.#runtimes.tuns.close({ restarting });
      // To clients who have had no word of another process the connection that they have is as good as a new one.
      const retired = this.#runtimes.retire(this.#handedOver ? () => sockets.emptied() : async () => {});
      const cutOff = (): void => {
        live.closeAll();
        sockets.cutOff(); // clients in a handshake and UDP associations are no sessions to wait for
      };
      const timer = setTimeout(cutOff, live.size === 0 && !this.#handedOver ? 0 : drainMs);
      await this.#externalUi[Symbol.asyncDispose]();
      await this.#updates[Symbol.asyncDispose]();
      await this.#controller[Symbol.asyncDispose]();
      await retired;
      clearTimeout(timer);
      cutOff();
      await this.#env.host.relayPath[Symbol.asyncDispose]();
      await this.#env.host.users.leaveFleet();
      await onCounted?.();
    };
    const closed = this.#closing ? Promise.reject(ENDING) : this.#inTurn(work);
    this.#closing = true;
    this.#env.loader.stop(); // a reload that only begins must not hold up the end
    this.#runtimes.stopLooking();
    this.#keeper[Symbol.dispose]();
    this.#backups[Symbol.dispose]();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close(0);
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const goesOn = (): Promise<T> =>
      this.#handedOver ? Promise.reject(new ApiError(503, "another process of weir has taken over")) : work();
    return this.#closing ? Promise.reject(ENDING) : this.#inTurn(goesOn);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    const nothing = (): void => {}; // neither answer nor error is kept: the caller has them
    this.#queue = done.then(nothing, nothing);
    return done;
  }
}
