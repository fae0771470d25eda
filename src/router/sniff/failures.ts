import { oldestKey } from "#lib/at.ts";
/** After so many failures in a row a destination is left alone. */
const MAX_FAILURES = 5;
/** It is looked at again when it was quiet for so long: another service may be there by then. */
const FORGET_MS = 10 * 60_000;
/** At the bound the one that failed longest ago is forgotten. */
const MAX_ENTRIES = 4096;

interface Entry {
  count: number;
  atMs: number;
}

/**
 * Destinations to which a client sends no host name, by a key of both: each attempt may delay a connection by a second.
 */
export class SniffFailures {
  /** In order of the last failure. */
  readonly #entries = new Map<string, Entry>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  isHopeless(key: string): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.count <= MAX_FAILURES) return false;
    if (this.#nowMs() - entry.atMs < FORGET_MS) return true;
    this.#entries.delete(key);
    return false;
  }

  failed(key: string): void {
    const count = (this.#entries.get(key)?.count ?? 0) + 1;
    this.#entries.delete(key);
    this.#entries.set(key, { count, atMs: this.#nowMs() });
    if (this.#entries.size > MAX_ENTRIES) this.#entries.delete(oldestKey(this.#entries));
  }

  worked(key: string): void {
    this.#entries.delete(key);
  }
}
