/** What lets the kernel forward some traffic of a TUN by itself, while this process is the one that captures. */
import { closeSync } from "node:fs";
import type { KernelBypass } from "#core/kernel-direct.ts";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";

export class BypassSlot implements AsyncDisposable {
  readonly #openBypass: (ways: number | null) => Promise<KernelBypass | null>;
  readonly #log: Log;
  #bypass: KernelBypass | null = null;
  /** Until the first is open. */
  #handed: number | null;
  #closed = false;
  /** One after the other. */
  #turn: Promise<void> = Promise.resolve();

  /**
   * `openBypass`: null where the TUN does without. `ways`: from the process before, for the first one, see
   * `KernelBypass.ways`; the descriptor is owned from here on.
   */
  constructor(
    openBypass: (ways: number | null) => Promise<KernelBypass | null>,
    { ways, log }: { readonly ways: number | null; readonly log: Log },
  ) {
    this.#openBypass = openBypass;
    this.#handed = ways;
    this.#log = log;
  }

  /** See `KernelBypass.ways`. */
  get ways(): number | null {
    return this.#bypass?.ways ?? null;
  }

  /** What is open goes on. Throws `ConfigError`. */
  open(): Promise<void> {
    return this.#next(async () => {
      if (this.#closed) return;
      if (this.#bypass !== null) return this.#bypass.resume();
      try {
        this.#bypass = await this.#openBypass(this.#handed);
      } finally {
        this.#closeHanded();
      }
    });
  }

  /** As `open`. Without it everything is captured: what fails is logged. */
  tryOpen(): Promise<void> {
    return this.open().catch((error: unknown) => this.#log.error(messageOf(error)));
  }

  /** Settles when what was begun before has come to its end. */
  get settled(): Promise<void> {
    return this.#turn;
  }

  /** Nothing that was learnt is in force when it settles, until `open`. */
  pause(): Promise<void> {
    return this.#next(async () => this.#bypass?.pause());
  }

  close(): Promise<void> {
    this.#closed = true;
    return this.#next(async () => {
      const bypass = this.#bypass;
      this.#bypass = null;
      this.#closeHanded();
      await bypass?.[Symbol.asyncDispose]();
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #closeHanded(): void {
    if (this.#handed !== null) closeSync(this.#handed);
    this.#handed = null;
  }

  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }
}
