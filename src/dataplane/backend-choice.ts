import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { RelayBackend } from "./backend.ts";
import {
  openWorkerBackend,
  type WorkerBackend,
  type WorkerBackendOptions,
} from "./workers/main/worker-backend.ts";

/** The configuration's `relay`. */
export type RelayMode = "auto" | "portable";

export interface RelayPathOptions extends Pick<WorkerBackendOptions, "tlsLibrary" | "seams"> {
  /** The last thread of the engine has died. */
  readonly onAllDead?: () => void;
}

/**
 * Chooses the backend that relays plain connections, for the life of the program. The workers are started at their
 * first use.
 */
export class BackendChoice implements AsyncDisposable {
  readonly #log: Log;
  #engine: Promise<WorkerBackend | null> | null = null;
  #opened: WorkerBackend | null = null;
  #said = "";

  readonly #options: RelayPathOptions;

  constructor(log: Log, options: RelayPathOptions) {
    this.#log = log;
    this.#options = options;
  }

  /** Null: everything goes through the portable pump. Says in one line of the log what is so, and why. Never rejects. */
  async choose(mode: RelayMode): Promise<RelayBackend | null> {
    if (mode === "portable") {
      this.#say("relay: portable pump (relay: portable)");
      return null;
    }
    const engine = await (this.#engine ??= this.#open());
    if (engine === null) return null;
    const { threads } = engine;
    if (threads > 0)
      this.#say(
        `relay: plain TCP by ${threads} threads (accept, dial, splice), the rest by the portable pump`,
      );
    return threads > 0 ? engine : null;
  }

  /** Has the engine report what it has moved; see `Engine.look`. */
  look(maxAgeMs?: number): void {
    this.#opened?.look(maxAgeMs);
  }

  /** Reports all connections that workers serve by cached routes. */
  sync(): void {
    this.#opened?.syncRouteCache();
  }

  /** Rules, lists, choices or policies have changed: workers ask for a route for every connection accepted from now on. */
  invalidateRoutes(): void {
    this.#opened?.invalidateRoutes();
  }

  async #open(): Promise<WorkerBackend | null> {
    try {
      const { tlsLibrary, seams } = this.#options;
      const onDeath = (why: string, left: number): void => this.#died(why, left);
      this.#opened = await openWorkerBackend({ tlsLibrary, seams, onDeath });
      return this.#opened;
    } catch (error) {
      this.#say(`relay: portable pump: the relay engine ${messageOf(error)}`);
      return null;
    }
  }

  #died(why: string, threadsLeft: number): void {
    const then = threadsLeft > 0 ? `${threadsLeft} go on` : "the portable pump takes over";
    this.#log.error(`relay: a thread has ended, its connections with it; ${then}: ${why}`);
    if (threadsLeft === 0) this.#options.onAllDead?.();
  }

  #say(text: string): void {
    if (this.#said !== text) this.#log.info(text);
    this.#said = text;
  }

  /** Resets what the engine still carries. */
  async [Symbol.asyncDispose](): Promise<void> {
    const engine = await this.#engine;
    await engine?.[Symbol.asyncDispose]();
  }
}
