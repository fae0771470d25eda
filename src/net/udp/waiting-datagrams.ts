import { keptDatagram } from "#core/kept-datagram.ts";
import type { Datagram } from "#core/session.ts";

/** Many times what one read of a socket brings before anybody can have decided anything: 64 messages, some of them runs. */
const MOST = 512;
const MOST_BYTES = 512 * 1024;

/** What comes before somebody takes it. Beyond the bounds it is dropped, as a full socket buffer would do. */
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
