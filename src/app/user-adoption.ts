/** Managed users put in force with a configuration; where their state file cannot be opened at the start, later. */
import type { Config } from "#config/config.ts";
import { messageOf, StoreError } from "#core/errors.ts";
import type { Host } from "#host/host.ts";
import { Retry } from "#lib/retry.ts";
import type { Inbounds } from "#runtime/inbounds.ts";
import type { Runtime } from "#runtime/runtime.ts";
import { userSettings } from "#runtime/user-settings.ts";

export interface UserAdoptionEnv {
  readonly host: Pick<Host, "files" | "log" | "users">;
  /** Those in force. */
  readonly present: () => { readonly config: Config; readonly inbounds: Inbounds };
  /** Of every runtime that may carry sessions. */
  readonly everywhere: () => readonly Inbounds["managed"][number][];
  readonly exclusively: (work: () => Promise<void>) => Promise<void>;
}

export class UserAdoption implements Disposable {
  readonly #env: UserAdoptionEnv;
  readonly #retry: Retry;

  constructor(env: UserAdoptionEnv) {
    this.#env = env;
    this.#retry = new Retry(() => env.exclusively(() => this.#tryAgain()));
  }

  /**
   * Rejects with nothing changed. `tolerant`: users that cannot be loaded leave their listeners closed to everybody, the
   * rest runs, and a state file that could not be opened is tried again by itself.
   */
  async adopt(config: Config, inbounds: Inbounds, tolerant: boolean): Promise<void> {
    const { host, everywhere } = this.#env;
    try {
      await host.users.adopt(userSettings(config, host.files), inbounds.managed, everywhere);
      this.#retry.stop();
    } catch (error) {
      if (!tolerant) throw error;
      this.#fail(config, error);
      if (host.users.waiting !== null) this.#retry.start();
    }
  }

  /** Rejects where it is to be tried once more. */
  async #tryAgain(): Promise<void> {
    const { host, present, everywhere } = this.#env;
    const { users, log } = host;
    if (users.waiting === null) return; // another configuration has come
    const { config, inbounds } = present();
    const before = users.waiting.reason;
    try {
      await users.adopt(userSettings(config, host.files), inbounds.managed, everywhere);
      log.warning("svc: the state file is open, the managed listeners have their users");
    } catch (error) {
      if (messageOf(error) !== before) this.#fail(config, error);
      if (users.waiting !== null) throw error;
    }
  }

  /** What another look at the file cannot change is not tried again. */
  #fail(config: Config, error: unknown): void {
    const { users, log, files } = this.#env.host;
    const isPassing = error instanceof StoreError;
    log.error(
      `svc: the managed listeners admit no client: ${messageOf(error)}${isPassing ? "; it is tried again" : ""}`,
    );
    users.wait(isPassing ? userSettings(config, files) : null, messageOf(error));
  }

  /** Users that `old` has and `next` has not lose what they have open; never throws. */
  closeRemoved(old: Pick<Inbounds, "closeRemovedUsers">, next: Runtime): void {
    try {
      old.closeRemovedUsers(next.inbounds);
    } catch (error) {
      this.#env.host.log.error(`connections of removed users stay open: ${messageOf(error)}`);
    }
  }

  [Symbol.dispose](): void {
    this.#retry.stop();
  }
}
