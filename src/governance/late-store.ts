/** A store that could not be opened when its policies were put in force: it is tried again, by itself and when asked. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { Retry } from "#lib/retry.ts";
import { closeStore, openStoreFile } from "./opening.ts";
import type { ActiveGovernance } from "./running.ts";
import type { StoreFile } from "./store.ts";

export interface LateStoreEnv {
  readonly log: Log;
  /** Null: traffic control is switched off. */
  readonly running: () => ActiveGovernance | null;
  /** Throws `ConfigError`. */
  readonly fileOf: (store: string) => StoreFile;
  /** A store is let go of once this settles; it never rejects. */
  readonly leave: (closing: Promise<void>) => void;
}

export class LateStore {
  readonly #env: LateStoreEnv;
  readonly #retry = new Retry(() => this.open());
  #opening: Promise<void> | null = null;

  constructor(env: LateStoreEnv) {
    this.#env = env;
  }

  /** Nothing to do where the store is open. Rejects with `StoreError`: not yet. */
  open(): Promise<void> {
    return (this.#opening ??= this.#tryOnce().finally(() => (this.#opening = null)));
  }

  /** Of a configuration that is put in force; `fault`: why its store is not open, null: it is. */
  follow(fault: string | null): void {
    if (fault === null) this.#retry.stop();
    else this.#retry.start();
  }

  async #tryOnce(): Promise<void> {
    const { log, leave } = this.#env;
    const running = this.#env.running();
    if (running === null || running.parts.fault === null) return;
    const { settings } = running.parts;
    try {
      const opened = await openStoreFile(this.#env.fileOf(settings.store), settings, log);
      if (this.#env.running() !== running) return leave(closeStore(opened, log));
      running.takeIn(opened);
      log.warning(`traffic control: ${settings.store} is open; what it holds counts, and all is kept again`);
    } catch (error) {
      const fault = messageOf(error);
      if (fault !== running.parts.fault) log.error(`traffic control: ${fault}; it is tried again`);
      running.stayClosed(fault);
      throw error;
    }
  }
}
