import { ProtocolError } from "#core/errors.ts";

export interface ArchiveLimits {
  /** Of all contents together. */
  readonly maxBytes: number;
  readonly maxEntries: number;
  /** Contents may be this many times as large as the archive; small ones get `FREE_BYTES` on top. */
  readonly maxRatio: number;
}

/** Even the smallest archive may hold this much: headers and a short text compress by any factor. */
const FREE_BYTES = 1024 * 1024;

/** What is left of the limits while an archive is unpacked. */
export class Budget {
  readonly #maxEntries: number;
  #entries = 0;
  #leftBytes: number;

  constructor(archiveBytes: number, { maxBytes, maxEntries, maxRatio }: ArchiveLimits) {
    this.#maxEntries = maxEntries;
    this.#leftBytes = Math.min(maxBytes, FREE_BYTES + archiveBytes * maxRatio);
  }

  get leftBytes(): number {
    return this.#leftBytes;
  }

  /** Asked before the contents are unpacked. */
  takeEntry(): void {
    if (++this.#entries > this.#maxEntries) throw new ProtocolError(`more than ${this.#maxEntries} entries`);
  }

  take(bytes: number): void {
    if (bytes > this.#leftBytes) throw tooLarge();
    this.#leftBytes -= bytes;
  }
}

export function tooLarge(): ProtocolError {
  return new ProtocolError("the contents are larger than allowed, or too large for so small an archive");
}
