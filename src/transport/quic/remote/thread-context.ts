/** TLS of a listener for the thread that runs it. */
import type { SharedTlsContext, TlsContextSource } from "#core/tls-contexts.ts";

/** The contexts of a listener as the thread has them, one after the other: each is kept until it has the next one. */
export class ThreadContext implements Disposable {
  readonly #source: TlsContextSource;
  readonly #onAlpn: bigint;
  readonly #say: (address: bigint) => void;
  readonly #watch: Disposable;
  #present: SharedTlsContext | null;
  /** Those that the thread may still make connections of, the oldest first. */
  readonly #leaving: (SharedTlsContext | null)[] = [];

  constructor(source: TlsContextSource, onAlpn: bigint, say: (address: bigint) => void) {
    this.#source = source;
    this.#onAlpn = onAlpn;
    this.#say = say;
    this.#present = source.share(onAlpn, true);
    this.#watch = source.watch(() => this.#renew());
  }

  /** 0: there is none, and no client gets in. */
  get address(): bigint {
    return this.#present?.address ?? 0n;
  }

  #renew(): void {
    const next = this.#source.share(this.#onAlpn, true);
    if (next !== null) this.#replace(next); // else the one before stays
  }

  #replace(next: SharedTlsContext | null): void {
    this.#leaving.push(this.#present);
    this.#present = next;
    this.#say(this.address);
  }

  /** The thread has the next one. */
  onObeyed(): void {
    this.#leaving.shift()?.release();
  }

  onDeath(): void {
    for (const one of this.#leaving.splice(0)) one?.release();
    this.#present?.release();
    this.#present = null;
  }

  [Symbol.dispose](): void {
    this.#watch[Symbol.dispose]();
    if (this.#present !== null) this.#replace(null);
  }
}
