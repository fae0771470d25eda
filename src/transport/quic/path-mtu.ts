/** How large a datagram the way carries: larger ones are tried once the handshake is done (RFC 9000 §14.3). */
import type { SentItem } from "./recovery/sent-packets.ts";
import { MIN_INITIAL_BYTES } from "./wire/header.ts";

const CANDIDATES = [1280, 1350, 1400, 1452, 1500, 2000] as const;
/** A size whose probes were lost so often does not fit (RFC 8899 §5.1.2, MAX_PROBES). */
const TRIES = 3;

export class PathMtu {
  bytes = MIN_INITIAL_BYTES;
  #most: number;
  readonly #onChanged: (bytes: number) => void;
  #isStarted = false;
  #isWaiting = false;
  #tries = 0;
  /** Larger ones did not arrive. */
  #bound = Infinity;

  constructor(most: number, onChanged: (bytes: number) => void) {
    this.#most = most;
    this.#onChanged = onChanged;
  }

  /** The handshake is done, and the peer takes so much. */
  start(peerTakes: number): void {
    this.#most = Math.min(this.#most, peerTakes);
    this.#isStarted = true;
    this.#look();
  }

  /** A datagram of another size is to be tried now. */
  wantsProbe = false;

  #look(): void {
    this.wantsProbe = this.#isStarted && !this.#isWaiting && this.#next() !== null;
  }

  /** Downwards: on most ways the largest fits at once. */
  #next(): number | null {
    const sizes = [...CANDIDATES.filter((size) => size < this.#most), this.#most];
    return sizes.findLast((size) => size > this.bytes && size < this.#bound) ?? null;
  }

  takeProbe(): { readonly size: number; readonly item: SentItem } {
    const size = this.#next() ?? this.bytes;
    this.#isWaiting = true;
    this.wantsProbe = false;
    return {
      size,
      item: {
        onAcked: () => {
          this.#isWaiting = false;
          this.#tries = 0;
          if (size > this.bytes && size < this.#bound) {
            this.bytes = size;
            this.#onChanged(size);
          }
          this.#look();
        },
        onLost: () => {
          this.#isWaiting = false;
          if (++this.#tries >= TRIES) {
            this.#tries = 0;
            this.#bound = size;
          }
          this.#look();
        },
      },
    };
  }

  /**
   * Nothing arrives any more, and it may be that only small datagrams would: packets are small from now on, and larger sizes
   * are tried again. Where all was lost, or nothing but chance took them, they come back; in a black hole they do not.
   */
  onSilence(): void {
    if (this.bytes === MIN_INITIAL_BYTES) return;
    this.bytes = MIN_INITIAL_BYTES;
    this.#tries = 0;
    this.#onChanged(this.bytes);
    this.#look();
  }
}
