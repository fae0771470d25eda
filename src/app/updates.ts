/** The program updates itself, asked by its Controller. */
import type { Config } from "#config/config.ts";
import type { OfferedView, UpdateRequest, UpdatesControl, UpdateView } from "#core/control.ts";
import { ABORTED, ApiError, INTERRUPTED, messageOf } from "#core/errors.ts";
import type { Host } from "#host/host.ts";
import type { Runtime } from "#runtime/runtime.ts";
import type { ReleaseSource } from "#update/release-source.ts";
import { VERSION } from "#version.ts";

/** What the process that runs brings to an update. */
export interface ProgramUpdates {
  /** The arguments of `weir -t` for what this process was started with. */
  readonly checkArgs: readonly string[];
  /** Has the program at this path take this process's place; answers with why it did not. Never rejects. */
  takeOver(program: string): Promise<string | null>;
}

export interface UpdatesEnv {
  readonly host: Pick<Host, "files" | "log" | "journal">;
  /** Absent: this process cannot be replaced. */
  readonly program: ProgramUpdates | undefined;
  /** Those in force. */
  config(): Config;
  runtime(): Pick<Runtime, "outbounds" | "trust">;
}

const CHANNELS: readonly string[] = ["", "release"];

export class Updates implements UpdatesControl, AsyncDisposable {
  readonly #env: UpdatesEnv;
  readonly #stop = new AbortController();
  #running: Promise<string> | null = null;

  constructor(env: UpdatesEnv) {
    this.#env = env;
  }

  view(): UpdateView {
    const { update } = this.#env.config();
    return { version: VERSION, isConfigured: update !== null, byController: update?.byController === true };
  }

  async look(): Promise<OfferedView> {
    try {
      const { lookForUpdate } = await import("#update/update.ts");
      const { version, age } = await lookForUpdate(await this.#source(), VERSION, this.#stop.signal);
      return { version, age };
    } catch (error) {
      throw refusal(messageOf(error), error);
    }
  }

  /** Resolves with the new version when it serves. Throws `ApiError` 500 with nothing changed; the reason is logged and reported, too. */
  async update({ channel }: UpdateRequest): Promise<string> {
    if (this.#running !== null) throw refusal("an update is being made already");
    if (!CHANNELS.includes(channel))
      throw refusal(`update.url is one folder without channels: expected none, or release, got ${channel}`);
    this.#running = this.#update().finally(() => (this.#running = null));
    try {
      return await this.#running;
    } catch (error) {
      const why = this.#stop.signal.aborted ? INTERRUPTED : messageOf(error);
      const { log, journal } = this.#env.host;
      log.error(`update: nothing has changed: ${why}`);
      journal.sinks.updateFailed(why);
      throw refusal(why, error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(ABORTED);
    await this.#running?.catch(() => {}); // the caller that started it gets the error
  }

  async #update(): Promise<string> {
    const { host, program } = this.#env;
    const { lookForUpdate, refuseOld, update } = await import("#update/update.ts");
    const { findInstallation, ownFolder } = await import("#update/installation.ts");
    const source = await this.#source();
    if (!this.view().byController)
      throw new Error("update.by-controller is not set: the Controller may not update the program");
    if (program === undefined) throw new Error("this process cannot be replaced");
    const installation = findInstallation(ownFolder());
    const { signal } = this.#stop;
    const offered = await lookForUpdate(source, VERSION, signal);
    refuseOld(offered, VERSION, false);
    const say = (text: string): void => host.log.info(`update: ${text}`);
    const takeOver = (path: string): Promise<string | null> => program.takeOver(path);
    await update(offered, { source, installation, takeOver, say, checkArgs: program.checkArgs }, signal);
    return offered.version;
  }

  async #source(): Promise<ReleaseSource> {
    const { host, config, runtime } = this.#env;
    const { openReleaseSource } = await import("#update/settings.ts");
    const { update } = config();
    const { outbounds, trust } = runtime();
    const { proxy = "" } = update ?? {};
    const dialer = proxy === "" ? outbounds.direct : outbounds.all.get(proxy);
    if (dialer === undefined) throw new Error(`update.proxy: proxy ${proxy} not found`);
    const way = { dialer, trust, userAgent: `weir/${VERSION}` };
    return await openReleaseSource(update, host.files, way);
  }
}

function refusal(why: string, cause?: unknown): ApiError {
  return new ApiError(500, `update error: ${why}`, { cause });
}
