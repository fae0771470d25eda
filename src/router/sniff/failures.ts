/** After so many failures in a row a destination is left alone. */
const MAX_FAILURES = 5;
/** It is looked at again when it was quiet for so long: another service may be there by then. */
const FORGET_MS = 10 * 60_000;
/** At the bound the destination that failed longest ago is forgotten. */
const MAX_DESTINATIONS = 4096;

interface Entry {
  count: number;
  atMs: number;
}

/** Destinations whose clients name no host: each attempt may cost a conversation a second. */
export class SniffFailures {
  /** In order of the last failure. */
  readonly #entries = new Map<string, Entry>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  isHopeless(destination: string): boolean {
    const entry = this.#entries.get(destination);
    if (entry === undefined || entry.count <= MAX_FAILURES) return false;
    if (this.#nowMs() - entry.atMs < FORGET_MS) return true;
    this.#entries.delete(destination);
    return false;
  }

  failed(destination: string): void {
    const count = (this.#entries.get(destination)?.count ?? 0) + 1;
    this.#entries.delete(destination);
    this.#entries.set(destination, { count, atMs: this.#nowMs() });
    if (this.#entries.size > MAX_DESTINATIONS)
      this.#entries.delete(this.#entries.keys().next().value as string);
  }

  worked(destination: string): void {
    this.#entries.delete(destination);
  }
}
