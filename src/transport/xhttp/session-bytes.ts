/** What one XHTTP session makes us hold, and on whose account: its own, until its client has shown who it is. */
import type { UnauthenticatedClient } from "#core/inbound.ts";

/** Of one session before that. */
const MOST_UNKNOWN_BYTES = 8 * 1024 * 1024;
/**
 * Of all sessions of a listener whose clients have shown who they are: bodies that are coming or wait for an earlier one. Beyond
 * this a post is refused with 503.
 */
const MOST_KNOWN_BYTES = 64 * 1024 * 1024;

/** Of all sessions of a listener whose clients are known. */
export class KnownBytes {
  held = 0;
}

export class SessionBytes {
  readonly #all: KnownBytes;
  readonly #unknown: UnauthenticatedClient | null;
  #held = 0;
  #isKnown = false;

  constructor(all: KnownBytes, unknown: UnauthenticatedClient | null) {
    this.#all = all;
    this.#unknown = unknown;
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  hasRoom(bytes: number): boolean {
    return this.#isKnown
      ? this.#all.held + bytes <= MOST_KNOWN_BYTES
      : this.#held + bytes <= MOST_UNKNOWN_BYTES;
  }

  /** Negative: so many fewer. */
  add(bytes: number): void {
    this.#held += bytes;
    if (this.#isKnown) this.#all.held += bytes;
    else this.#unknown?.grow(bytes);
  }

  settle(): void {
    this.#isKnown = true;
    this.#unknown?.leave();
    this.#all.held += this.#held;
  }
}
