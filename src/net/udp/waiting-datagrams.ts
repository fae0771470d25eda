import { keptDatagram } from "#core/kept-datagram.ts";
import type { Datagram } from "#core/session.ts";

/** Many times what one read of a socket brings before any decision is possible: 64 messages, some of them runs. */
const MOST = 512;
const MOST_BYTES = 512 * 1024;

/**
 * Datagrams that arrive before there is a receiver. Beyond the bounds they are dropped, as a full socket buffer would
 * do.
 */
export class WaitingDatagrams {
  #items: Datagram[] = [];
  #bytes = 0;

  /** Keeps a copy; false: there is no room. */
  push(item: Datagram): boolean {
    const bytes = this.#bytes + item.payload.length;
    if (this.#items.length === MOST || bytes > MOST_BYTES) return false;
    this.#items.push(keptDatagram(item));
    this.#bytes = bytes;
    return true;
  }

  /** Empties it. */
  take(): readonly Datagram[] {
    const items = this.#items;
    this.#items = [];
    this.#bytes = 0;
    return items;
  }
}
