/** Application datagrams that wait to be sent (RFC 9221). Beyond the bound the newest is dropped, as on any network. */
import { FRAME } from "./wire/frames.ts";
import { varintBytes, type WireWriter } from "./wire/writer.ts";

const MOST_BYTES = 512 * 1024;
const MOST_WAITING = 1024;

export class DatagramQueue {
  readonly #waiting: Uint8Array[] = [];
  #bytes = 0;

  get hasData(): boolean {
    return this.#waiting.length > 0;
  }

  /** Keeps the payload. */
  push(payload: Uint8Array): void {
    if (this.#bytes + payload.length > MOST_BYTES || this.#waiting.length >= MOST_WAITING) return;
    this.#bytes += payload.length;
    this.#waiting.push(payload);
  }

  /** False: there is none, or the next one does not fit; one that fits into no packet is dropped. */
  writeFrame(out: WireWriter, room: number, isEmptyPacket: boolean): boolean {
    const payload = this.#waiting[0];
    if (payload === undefined) return false;
    const bytes = 1 + varintBytes(payload.length) + payload.length;
    if (bytes > room && !isEmptyPacket) return false;
    this.#waiting.shift();
    this.#bytes -= payload.length;
    if (bytes > room) return this.writeFrame(out, room, isEmptyPacket);
    out.byte(FRAME.datagramLength);
    out.varint(payload.length);
    out.put(payload);
    return true;
  }
}
