import type { ContextSource, SharedContext } from "#core/held.ts";
import type { RelayThread } from "./relay-thread.ts";
import { RENEWED } from "./shared-table.ts";

/**
 * What the threads of one listener make TLS conversations of. A context that was replaced is released when no thread can
 * be between reading its address and using it: when all of them have obeyed a command that came after the change.
 */
export class FrontContexts {
  readonly #source: ContextSource;
  readonly #number: number;
  /** Those that listen. */
  readonly #threads: ReadonlySet<RelayThread>;
  readonly #watch: Disposable;
  #present: SharedContext | null;
  #replaced: SharedContext[] = [];
  /** Some that were replaced, and the threads that may still be at them. */
  #round: { readonly contexts: readonly SharedContext[]; readonly threads: Set<RelayThread> } | null = null;

  private constructor(source: ContextSource, number: number, threads: ReadonlySet<RelayThread>) {
    this.#source = source;
    this.#number = number;
    this.#threads = threads;
    this.#present = source.share();
    this.#publish();
    this.#watch = source.watch(() => this.#renew());
  }

  /** Before any of the threads listens. Null: there is no context for them. */
  static open(
    source: ContextSource,
    number: number,
    threads: ReadonlySet<RelayThread>,
  ): FrontContexts | null {
    const made = new FrontContexts(source, number, threads);
    if (made.#present !== null) return made;
    made.close();
    return null;
  }

  #publish(): void {
    for (const { front } of this.#threads)
      Atomics.store(front.contexts, this.#number, this.#present?.address ?? 0n);
  }

  #renew(): void {
    if (this.#present !== null) this.#replaced.push(this.#present);
    this.#present = this.#source.share();
    this.#publish();
    this.#begin();
  }

  #begin(): void {
    if (this.#round !== null || this.#replaced.length === 0) return;
    this.#round = { contexts: this.#replaced.splice(0), threads: new Set(this.#threads) };
    for (const thread of this.#threads)
      thread.command(this.#number, RENEWED, { onObeyed: () => this.left(thread) });
  }

  /** It is past whatever it was doing, or does nothing any more. */
  left(thread: RelayThread): void {
    const round = this.#round;
    if (round === null || !round.threads.delete(thread) || round.threads.size > 0) return;
    this.#round = null;
    for (const context of round.contexts) context.release();
    this.#begin();
  }

  /** Nobody listens any more. */
  close(): void {
    this.#watch[Symbol.dispose]();
    for (const context of [...this.#replaced, ...(this.#round?.contexts ?? [])]) context.release();
    this.#present?.release();
    this.#replaced = [];
    this.#round = this.#present = null;
  }
}
