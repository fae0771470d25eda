/** What lets the kernel forward some traffic of a TUN by itself, while this process is the one that captures. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";

/** Null: the TUN does without. */
export type OpenBypass = () => Promise<AsyncDisposable | null>;

export class BypassSlot implements AsyncDisposable {
  readonly #openBypass: OpenBypass;
  readonly #log: Log;
  #bypass: AsyncDisposable | null = null;
  #closed = false;
  /** One after the other. */
  #turn: Promise<void> = Promise.resolve();

  constructor(openBypass: OpenBypass, log: Log) {
    this.#openBypass = openBypass;
    this.#log = log;
  }

  /** What is open stays as it is. Throws `ConfigError`. */
  open(): Promise<void> {
    return this.#next(async () => {
      if (!this.#closed) this.#bypass ??= await this.#openBypass();
    });
  }

  /** As `open`. Without it everything is captured: what fails is logged. */
  tryOpen(): Promise<void> {
    return this.open().catch((error: unknown) => this.#log.error(messageOf(error)));
  }

  /** Everything is captured when it settles. */
  close(): Promise<void> {
    return this.#next(async () => {
      const bypass = this.#bypass;
      this.#bypass = null;
      await bypass?.[Symbol.asyncDispose]();
    });
  }

  /** For good. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    return this.close();
  }

  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }
}
