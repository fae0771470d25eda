import type { TlsChallenges } from "#core/acme.ts";
import type { KeyPair } from "#core/tls.ts";

/** The validations by TLS-ALPN-01 that are going on: a few, for the time of one order. */
export class ChallengeBook implements TlsChallenges {
  readonly #pairs = new Map<string, KeyPair>();
  readonly #watchers = new Set<() => void>();

  get isEmpty(): boolean {
    return this.#pairs.size === 0;
  }

  pairFor(serverName: string): KeyPair | null {
    return this.#pairs.get(serverName) ?? null;
  }

  watch(onChange: () => void): Disposable {
    this.#watchers.add(onChange);
    return { [Symbol.dispose]: () => void this.#watchers.delete(onChange) };
  }

  /** Until it is disposed of. */
  add(serverName: string, pair: KeyPair): Disposable {
    this.#change(() => this.#pairs.set(serverName, pair));
    return {
      [Symbol.dispose]: () => this.#change(() => this.#pairs.delete(serverName)),
    };
  }

  #change(change: () => void): void {
    const wasEmpty = this.isEmpty;
    change();
    if (wasEmpty !== this.isEmpty) for (const onChange of this.#watchers) onChange();
  }
}
