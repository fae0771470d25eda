/** The configuration file as the Controller changes it: first in force, then in the file, or back again. */
import type { Config } from "#config/config.ts";
import type { ConfigChange, ConfigFileControl, ConfigKept, ConfigRemark } from "#core/control.ts";
import type { Edit } from "#core/config-edit.ts";
import { ApiError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { configOf, type ConfigInput } from "./load-config.ts";
import type { Loaded, Loader, SourceFile } from "./loader.ts";
import { refuseOtherUpdate } from "./update-block.ts";

export interface KeeperEnv {
  readonly input: ConfigInput;
  readonly loader: Loader;
  readonly log: Log;
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** The one in force. */
  present(): Config;
  /** Puts it in force; throws with nothing changed. */
  apply(config: Config): Promise<void>;
  /** Puts the source in force again, Controller included. */
  reload(): Promise<void>;
  /** Makes the Controller anew where its settings are others. Never throws. */
  settle(): Promise<void>;
}

interface Trial {
  readonly text: string;
  readonly hash: string;
  readonly endsAtMs: number;
  readonly timer: NodeJS.Timeout;
}

export class ConfigKeeper implements ConfigFileControl, Disposable {
  readonly #env: KeeperEnv;
  /** Held in memory only: what a restart reads is the file as it was. */
  #trial: Trial | null = null;

  constructor(env: KeeperEnv) {
    this.#env = env;
  }

  async view(): ReturnType<ConfigFileControl["view"]> {
    const file = this.#file();
    const [{ text, hash }, versions] = await Promise.all([file.read(), file.versions()]);
    const trial = this.#trial;
    const left = trial && { text: trial.text, leftMs: Math.max(0, trial.endsAtMs - performance.now()) };
    return { file: file.path, text, hash, versions, trial: left };
  }

  async check(text: string): ReturnType<ConfigFileControl["check"]> {
    return remarksOf(await this.#env.loader.text(text));
  }

  async preview(edits: readonly Edit[]): ReturnType<ConfigFileControl["preview"]> {
    const file = this.#file();
    const { text: before, hash } = await file.read();
    const edited = await file.edited(before, edits);
    return { before, text: edited.text, hash, remarks: remarksOf(edited) };
  }

  put(text: string, change: ConfigChange): Promise<ConfigKept> {
    return this.#change(change, async () => ({ ...(await this.#env.loader.text(text)), text }));
  }

  edit(edits: readonly Edit[], change: ConfigChange): Promise<ConfigKept> {
    return this.#change(change, async (file) => file.edited((await file.read()).text, edits));
  }

  rollback(id: number | null, change: ConfigChange): Promise<ConfigKept> {
    return this.#change(change, async (file) => {
      const newest = id ?? (await file.versions())[0]?.id ?? 0;
      const text = await this.version(newest);
      return { ...(await this.#env.loader.text(text)), text };
    });
  }

  async version(id: number): Promise<string> {
    const text = await this.#file().version(id);
    if (text === null)
      throw new ApiError(404, id === 0 ? "there is no earlier version" : `there is no version ${id}`);
    return text;
  }

  confirm(): Promise<ConfigKept> {
    return this.#env.exclusively(async () => {
      const { text, hash } = this.#onTrial();
      const file = this.#file();
      await using prepared = await file.prepare(text, hash);
      await prepared.commit();
      this.forget();
      this.#env.log.info(`${file.path}: the configuration on trial was confirmed and written`);
      return this.#kept(file);
    });
  }

  cancel(): Promise<ConfigKept> {
    return this.#env.exclusively(async () => {
      this.#onTrial();
      await this.#takeBack("the one on trial was taken back");
      return this.#kept(this.#file());
    });
  }

  schema(): Promise<object> {
    return this.#env.loader.schema();
  }

  /** Another configuration was put in force: there is no trial any more. */
  forget(): void {
    clearTimeout(this.#trial?.timer);
    this.#trial = null;
  }

  [Symbol.dispose](): void {
    this.forget();
  }

  #file(): SourceFile {
    const { file } = this.#env.loader;
    if (file !== null) return file;
    throw new ApiError(
      400,
      "weir was not started with a configuration file (-f), so there is none to show or write",
    );
  }

  #onTrial(): Trial {
    if (this.#trial === null) throw new ApiError(409, "no configuration is on trial");
    return this.#trial;
  }

  #change(
    { hash, trialMs }: ConfigChange,
    make: (file: SourceFile) => Promise<Loaded & { readonly text: string }>,
  ): Promise<ConfigKept> {
    const { exclusively, input, apply, log } = this.#env;
    return exclusively(async () => {
      const file = this.#file();
      if (this.#trial !== null)
        throw new ApiError(409, "a configuration is on trial: confirm it or take it back first");
      const found = await file.read();
      if (found.hash !== hash)
        throw new ApiError(
          409,
          `the configuration file has changed meanwhile: its hash is ${found.hash} now; read it again`,
        );
      const loaded = await make(file);
      const config = configOf(loaded, input);
      refuseOtherUpdate(config, this.#env.present());
      await using prepared = await file.prepare(loaded.text, hash); // where it cannot be written nothing shall change
      await apply(config);
      if (trialMs !== null) {
        this.#begin(loaded.text, hash, trialMs);
        log.warning(
          `a configuration is on trial for ${Math.round(trialMs / 1000)} s; ${file.path} is as before`,
        );
        return this.#kept(file);
      }
      await prepared.commit().catch(async (error: unknown) => {
        await this.#takeBack("the new one could not be written");
        throw error;
      });
      log.info(`${file.path}: written through the Controller`);
      return this.#kept(file);
    });
  }

  #begin(text: string, hash: string, trialMs: number): void {
    const timer = setTimeout(() => {
      const end = async (): Promise<void> => {
        if (this.#trial?.timer === timer) await this.#takeBack("the one on trial was not confirmed");
      };
      void this.#env.exclusively(end).catch(() => {}); // the program ends
    }, trialMs);
    this.#trial = { text, hash, endsAtMs: performance.now() + trialMs, timer };
  }

  async #takeBack(why: string): Promise<void> {
    this.forget();
    const { log, reload } = this.#env;
    try {
      await reload();
      log.warning(`the configuration of the file is in force again: ${why}`);
    } catch (error) {
      for (const fault of messageOf(error).split("\n"))
        log.error(`${why}, and the configuration of the file cannot be put in force again: ${fault}`);
    }
  }

  async #kept(file: SourceFile): Promise<ConfigKept> {
    const { hash } = await file.read();
    return { hash, settle: () => void this.#env.settle() };
  }
}

function remarksOf({ result }: Loaded): readonly ConfigRemark[] {
  return [...(result.errors ?? []), ...result.warnings].map(({ severity, line, column, path, message }) => ({
    severity,
    line,
    column,
    path,
    message,
  }));
}
