/** What the fragments of all flows of a connection hold. At the bound those go first whose datagram began first. */
import { oldestKey } from "#lib/at.ts";

const MOST_BYTES = 4 * 1024 * 1024;
/** What a fragment counts for besides its bytes: peers choose how small they are. */
const PIECE_BYTES = 128;

/** Fragments of one datagram. */
export interface Fragments {
  drop(): void;
}

export class FragmentRoom {
  /** Bytes of each, in the order in which they began. */
  readonly #held = new Map<Fragments, number>();
  #bytes = 0;

  /** One fragment more, for which others may be dropped. */
  take(fragments: Fragments, bytes: number): void {
    this.#held.set(fragments, (this.#held.get(fragments) ?? 0) + bytes + PIECE_BYTES);
    this.#bytes += bytes + PIECE_BYTES;
    while (this.#bytes > MOST_BYTES) oldestKey(this.#held).drop();
  }

  leave(fragments: Fragments): void {
    this.#bytes -= this.#held.get(fragments) ?? 0;
    this.#held.delete(fragments);
  }
}
