import { messageOf } from "#core/errors.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import type { LiveConnection } from "#core/live.ts";
import type { Log } from "#core/log.ts";
import type { Protocol } from "#core/protocol.ts";
import type { UserAdmin, UsersControl } from "#core/users.ts";
import type { CounterOf } from "./counters.ts";
import { Manager } from "./manager.ts";
import type { UsersSettings } from "./settings.ts";

export interface UsersEnv {
  readonly log: Log;
  readonly nowMs: () => number;
  readonly live: Iterable<LiveConnection>;
  /** All that this build speaks. */
  readonly protocols: readonly Protocol[];
}

/** What a crash may cost of the counters. */
const CHECKPOINT_MS = 1_000;

/** Managed users for the life of the program; what is managed, and in which file, changes with the configuration. */
export class Users implements UsersControl {
  readonly #env: UsersEnv;
  #manager: Manager | null = null;
  #inbounds: () => Iterable<ManagedInbound> = () => [];
  #timer: NodeJS.Timeout | undefined;

  constructor(env: UsersEnv) {
    this.#env = env;
  }

  get admin(): UserAdmin | null {
    return this.#manager;
  }

  /** For the ledger. */
  readonly counterOf: CounterOf = (listener, user) => this.#manager?.counters.get(listener, user) ?? null;

  /**
   * Puts settings in force, null: none. `running` are the listeners, opened without users, that are to serve them;
   * `inbounds` answers at any time with all that were opened so and may carry sessions, the present ones last. Throws
   * `ConfigError`, `StoreError` with nothing changed but `running`; does all in one turn of the event loop.
   */
  adopt(
    settings: UsersSettings | null,
    running: readonly ManagedInbound[],
    inbounds: () => Iterable<ManagedInbound>,
  ): void {
    if (settings === null) this.#leave();
    else this.#enter(settings, running);
    this.#inbounds = inbounds;
    const managed = new Set(settings?.listeners.map(({ name }) => name));
    // Those who came in as managed users are nobody any more where the listener is no longer managed.
    this.#empty([...inbounds()].filter(({ name }) => !managed.has(name)));
  }

  /** Writes counters that have moved. */
  checkpoint(): void {
    this.#manager?.checkpoint();
  }

  /** The end of the program, after its last session. */
  close(): void {
    this.#leave();
  }

  #enter(settings: UsersSettings, running: readonly ManagedInbound[]): void {
    if (this.#manager?.store === settings.store) return this.#manager.configure(settings, running);
    this.#manager?.checkpoint();
    const fresh = Manager.open(settings, {
      ...this.#env,
      inbounds: () => this.#inbounds(),
      onFailure: (error) => this.#failClosed(error),
    });
    try {
      fresh.configure(settings, running);
    } catch (error) {
      fresh.close();
      throw error;
    }
    this.#leave();
    this.#manager = fresh;
    this.#timer = setInterval(() => this.checkpoint(), CHECKPOINT_MS).unref();
  }

  #leave(): void {
    clearInterval(this.#timer);
    this.#manager?.close();
    this.#manager = null;
  }

  #failClosed(error: unknown): void {
    this.#env.log.error(`managed users: nobody is let in until the next reload: ${messageOf(error)}`);
    this.#empty([...this.#inbounds()]);
    this.#leave();
  }

  #empty(inbounds: readonly ManagedInbound[]): void {
    for (const inbound of inbounds) {
      try {
        inbound.replaceUsers([]);
      } catch (error) {
        this.#env.log.error(`listener ${inbound.name}: its users cannot be taken away: ${messageOf(error)}`);
      }
    }
  }
}
