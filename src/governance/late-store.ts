/** A store that could not be opened when its policies were put in force: it is tried again, by itself and when asked. */
import { messageOf, StoreError } from "#core/errors.ts";
import { Retry } from "#lib/retry.ts";
import { closeStore, openStoreFile, type OpeningEnv, TooLargeError } from "./opening.ts";
import type { ActiveGovernance } from "./running.ts";
import type { GovernanceSettings } from "./settings.ts";
import type { StoreFile } from "./store.ts";

export interface LateStoreEnv extends OpeningEnv {
  /** Null: traffic control is switched off. */
  readonly running: () => ActiveGovernance | null;
  /** Throws `ConfigError`. */
  readonly fileOf: (store: string) => StoreFile;
  /** A store is let go of once this settles; it never rejects. */
  readonly leave: (closing: Promise<void>) => void;
}

export class LateStore {
  readonly #env: LateStoreEnv;
  readonly #retry = new Retry(() => this.#retryOnce());
  #opening: Promise<void> | null = null;
  /** It had so many bytes when it was too large: opening it again would only cost. */
  #tooLargeBytes: number | null = null;

  constructor(env: LateStoreEnv) {
    this.#env = env;
  }

  /**
   * Nothing to do where the store is open. `settings`: they say how large it may be, before they are in force. Rejects with
   * `StoreError`: not yet.
   */
  open(settings: GovernanceSettings): Promise<void> {
    return (this.#opening ??= this.#tryOnce(settings).finally(() => (this.#opening = null)));
  }

  /** Of a configuration that is put in force; `fault`: why its store is not open, null: it is. */
  follow(fault: string | null): void {
    if (fault === null) this.#retry.stop();
    else this.#retry.start();
  }

  async #retryOnce(): Promise<void> {
    const parts = this.#env.running()?.parts;
    if (parts === undefined || parts.fault === null) return;
    const { settings, fault } = parts;
    if (this.#env.fileOf(settings.store).sizeBytes() === this.#tooLargeBytes) throw new StoreError(fault);
    await this.open(settings);
  }

  async #tryOnce(settings: GovernanceSettings): Promise<void> {
    const { log, leave } = this.#env;
    const running = this.#env.running();
    if (running === null || running.parts.fault === null) return;
    const file = this.#env.fileOf(settings.store);
    this.#tooLargeBytes = null;
    try {
      const opened = await openStoreFile(file, settings, this.#env);
      if (this.#env.running() !== running) return leave(closeStore(opened, log));
      running.takeIn(opened);
      log.warning(`traffic control: ${settings.store} is open; what it holds counts, and all is kept again`);
    } catch (error) {
      const fault = messageOf(error);
      if (fault !== running.parts.fault) log.error(`traffic control: ${fault}; it is tried again`);
      running.stayClosed(fault);
      if (error instanceof TooLargeError) this.#tooLargeBytes = file.sizeBytes();
      throw error;
    }
  }
}
