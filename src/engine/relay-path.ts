import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Carrier } from "#relay/carrier.ts";
import { openEngine, type Engine, type EngineOptions } from "./engine.ts";

/** The configuration's `relay`. */
export type RelayMode = "auto" | "portable";

export interface RelayPathOptions extends Pick<EngineOptions, "seams"> {
  /** The last thread of the engine has died. */
  readonly onAllDead?: () => void;
}

/** Which way plain conversations take, for the life of the program. The engine is opened when first asked for. */
export class RelayPath implements AsyncDisposable {
  readonly #log: Log;
  #engine: Promise<Engine | null> | null = null;
  #opened: Engine | null = null;
  #said = "";

  readonly #options: RelayPathOptions;

  constructor(log: Log, options: RelayPathOptions = {}) {
    this.#log = log;
    this.#options = options;
  }

  /** Null: everything goes through the portable pump. Says in one line of the log what is so, and why. Never rejects. */
  async choose(mode: RelayMode): Promise<Carrier | null> {
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

  /** Has the engine make everybody known. */
  hear(): void {
    this.#opened?.hear();
  }

  /** Rules, lists, choices or policies have changed: the engine asks about whoever comes from now on. */
  changed(): void {
    this.#opened?.withdraw();
  }

  async #open(): Promise<Engine | null> {
    try {
      const { seams } = this.#options;
      this.#opened = await openEngine({ seams, onDeath: (why, left) => this.#died(why, left) });
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
