import { DialError } from "#core/errors.ts";

/** Two tries of a handshake. */
const WAIT_MS = 10_000;

interface Waiting {
  resolve(): void;
  reject(error: DialError): void;
}

/** Dials that wait for the keys of one peer. */
export class WaitingDials {
  readonly #label: string;
  readonly #waiting = new Set<Waiting>();

  /** `label`: of the peer, for messages. */
  constructor(label: string) {
    this.#label = label;
  }

  /** Rejects with `DialError` where it takes too long, or the signal ends it. */
  add(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { resolve, reject };
    const onAbort = (): void => reject(new DialError("aborted", `${this.#label}: aborted`, { atNode: true }));
    const timer = setTimeout(() => reject(this.#silence()), WAIT_MS);
    signal.addEventListener("abort", onAbort);
    this.#waiting.add(waiting);
    if (signal.aborted) onAbort();
    return promise.finally(() => {
      this.#waiting.delete(waiting);
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    });
  }

  goOn(): void {
    for (const waiting of this.#waiting) waiting.resolve();
  }

  fail(error: DialError = this.#silence()): void {
    for (const waiting of this.#waiting) waiting.reject(error);
  }

  #silence(): DialError {
    const text = `${this.#label} does not answer the handshake: are its address and both keys right?`;
    return new DialError("timeout", text, { atNode: true });
  }
}
