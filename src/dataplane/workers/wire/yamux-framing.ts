import { byteAt } from "#lib/at.ts";
import {
  ACK,
  DATA,
  encodeHead,
  FIN,
  FIRST_ID,
  GO_AWAY,
  GO_AWAY_NORMAL,
  GO_AWAY_PROTOCOL,
  HEAD_BYTES,
  INITIAL_WINDOW,
  MAX_BODY_BYTES,
  MAX_UNANSWERED,
  OUR_WINDOW,
  PING,
  RST,
  SYN,
  VERSION,
  WINDOW_UPDATE,
  writeHead,
} from "#transport/mux/yamux-frame.ts";
import type { MuxFraming, MuxHeard } from "./mux-framing.ts";

/** yamux: every stream has a window of its own. */
export class YamuxFraming implements MuxFraming {
  readonly headBytes = HEAD_BYTES;
  readonly mostBodyBytes = MAX_BODY_BYTES;
  readonly firstId = FIRST_ID;
  readonly sendWindow = INITIAL_WINDOW;
  readonly receiveWindow = OUR_WINDOW;
  readonly isPatient = false;
  /** Pings. */
  #unanswered = 0;

  encodeOpen(id: number): Uint8Array {
    return encodeHead(WINDOW_UPDATE, SYN, id, OUR_WINDOW - INITIAL_WINDOW);
  }

  mayOpen(id: number, isOpen: boolean): boolean {
    return id % 2 === 1 && !isOpen;
  }

  encodeAccepted(id: number): Uint8Array {
    return encodeHead(WINDOW_UPDATE, ACK, id, OUR_WINDOW - INITIAL_WINDOW);
  }

  writeDataHead(out: Uint8Array, at: number, id: number, size: number): void {
    writeHead(out, at, DATA, 0, id, size);
  }

  encodeEnd(id: number): Uint8Array {
    return encodeHead(WINDOW_UPDATE, FIN, id, 0);
  }

  encodeLeft(id: number, endSent: boolean, farEnded: boolean): Uint8Array | null {
    return endSent && farEnded ? null : encodeHead(WINDOW_UPDATE, RST, id, 0);
  }

  encodeCredit(id: number, bytes: number): Uint8Array {
    return encodeHead(WINDOW_UPDATE, 0, id, bytes);
  }

  keepAlive(): Uint8Array | null {
    if (this.#unanswered >= MAX_UNANSWERED) return null;
    this.#unanswered++;
    return encodeHead(PING, SYN, 0, this.#unanswered);
  }

  encodeFinal(isFault: boolean): Uint8Array {
    return encodeHead(GO_AWAY, 0, 0, isFault ? GO_AWAY_PROTOCOL : GO_AWAY_NORMAL);
  }

  onHead(head: Buffer, heard: MuxHeard): boolean {
    const type = byteAt(head, 1);
    const flags = head.readUInt16BE(2);
    const length = head.readUInt32BE(8);
    if (byteAt(head, 0) !== VERSION) return false;
    this.#unanswered = 0;
    if (type === DATA || type === WINDOW_UPDATE)
      return this.#onStream(type, flags, head.readUInt32BE(4), length, heard);
    if (type === PING && (flags & SYN) !== 0) heard.say(encodeHead(PING, ACK, 0, length));
    if (type === GO_AWAY) heard.retire();
    return type === PING || (type === GO_AWAY && length === GO_AWAY_NORMAL);
  }

  #onStream(type: number, flags: number, id: number, length: number, heard: MuxHeard): boolean {
    if ((flags & SYN) !== 0 && !heard.onOpen(id)) return false;
    if ((flags & RST) !== 0) heard.onReset(id);
    const ends = (flags & FIN) !== 0;
    if (type === DATA) return heard.onData(id, length, ends);
    const isRight = heard.onCredit(id, length);
    if (ends) heard.onFarEnd(id);
    return isRight;
  }
}
