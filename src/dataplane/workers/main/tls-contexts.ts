import type { TlsContextSource, SharedTlsContext } from "#core/tls-contexts.ts";
import type { WorkerHandle } from "./worker-handle.ts";
import { RENEWED } from "#dataplane/workers/shared/opcodes.ts";
import { itemAt } from "#lib/at.ts";

/**
 * The TLS contexts of one listener for the workers. A replaced context is released when no worker can be between
 * reading its address and using it: when all of them have executed a command that came after the change.
 */
export class WorkerTlsContexts {
  readonly #source: TlsContextSource;
  readonly #number: number;
  /** Those that listen. */
  readonly #threads: ReadonlySet<WorkerHandle>;
  readonly #watch: Disposable;
  /** Of each thread. */
  #present: readonly SharedTlsContext[] = [];
  #replaced: SharedTlsContext[] = [];
  /** Some that were replaced, and the threads that may still be at them. */
  #round: { readonly contexts: readonly SharedTlsContext[]; readonly threads: Set<WorkerHandle> } | null =
    null;

  private constructor(source: TlsContextSource, number: number, threads: ReadonlySet<WorkerHandle>) {
    this.#source = source;
    this.#number = number;
    this.#threads = threads;
    this.#share();
    this.#watch = source.watch(() => this.#renew());
  }

  /** Before any of the threads listens. Null: there is no context for them. */
  static open(
    source: TlsContextSource,
    number: number,
    threads: ReadonlySet<WorkerHandle>,
  ): WorkerTlsContexts | null {
    const made = new WorkerTlsContexts(source, number, threads);
    if (made.#present.length === threads.size) return made;
    made.close();
    return null;
  }

  #share(): void {
    const present: SharedTlsContext[] = [];
    for (const { accepts: offload } of this.#threads) {
      const onAlpn = itemAt(offload.onAlpn, 0);
      const context = onAlpn === 0n ? null : this.#source.share(onAlpn);
      Atomics.store(offload.contexts, this.#number, context?.address ?? 0n);
      if (context !== null) present.push(context);
    }
    this.#present = present;
  }

  #renew(): void {
    this.#replaced.push(...this.#present);
    this.#share();
    this.#begin();
  }

  #begin(): void {
    if (this.#round !== null || this.#replaced.length === 0) return;
    this.#round = { contexts: this.#replaced.splice(0), threads: new Set(this.#threads) };
    for (const thread of this.#threads)
      thread.command(this.#number, RENEWED, { onExecuted: () => this.left(thread) });
  }

  /** It is past whatever it was doing, or does nothing any more. */
  left(thread: WorkerHandle): void {
    const round = this.#round;
    if (round === null || !round.threads.delete(thread) || round.threads.size > 0) return;
    this.#round = null;
    for (const context of round.contexts) context.release();
    this.#begin();
  }

  /** The listener has closed. */
  close(): void {
    this.#watch[Symbol.dispose]();
    const left = [...this.#present, ...this.#replaced, ...(this.#round?.contexts ?? [])];
    for (const context of left) context.release();
    this.#present = this.#replaced = [];
    this.#round = null;
  }
}
