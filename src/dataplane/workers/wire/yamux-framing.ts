import { byteAt } from "#lib/at.ts";
import * as yamux from "#transport/mux/yamux-frame.ts";
import { MuxFraming, type MuxHeard } from "./mux-framing.ts";

/** yamux: every stream has a window of its own. */
export class YamuxFraming extends MuxFraming {
  readonly headBytes = yamux.HEAD_BYTES;
  readonly dataHeadBytes = yamux.HEAD_BYTES;
  readonly mostBodyBytes = yamux.MAX_BODY_BYTES;
  readonly firstId = yamux.FIRST_ID;
  readonly sendWindow = yamux.INITIAL_WINDOW;
  readonly receiveWindow = yamux.OUR_WINDOW;
  override readonly mostHeldBytes = yamux.MAX_HELD_BYTES;
  readonly isPatient = false;
  override readonly mostWindow = yamux.MAX_WINDOW;
  /** Pings. */
  #unanswered = 0;

  encodeOpen(id: number): Uint8Array {
    return yamux.encodeOpen(id);
  }

  mayOpen(id: number, isOpen: boolean): boolean {
    return id % 2 === 1 && !isOpen;
  }

  encodeAccepted(id: number): Uint8Array {
    return yamux.encodeAccepted(id);
  }

  writeDataHead(out: Uint8Array, at: number, id: number, size: number): void {
    yamux.writeHead(out, at, yamux.DATA, 0, id, size);
  }

  encodeEnd(id: number): Uint8Array {
    return yamux.encodeEnd(id);
  }

  encodeLeft(id: number, endSent: boolean, farEnded: boolean): Uint8Array | null {
    return endSent && farEnded ? null : yamux.encodeReset(id);
  }

  encodeCredit(id: number, bytes: number): Uint8Array {
    return yamux.encodeCredit(id, bytes);
  }

  keepAlive(): Uint8Array | null {
    if (this.#unanswered >= yamux.MAX_UNANSWERED) return null;
    this.#unanswered++;
    return yamux.encodePing(this.#unanswered);
  }

  encodeFinal(isFault: boolean): Uint8Array {
    return yamux.encodeGoAway(isFault);
  }

  onHead(head: Buffer, heard: MuxHeard): boolean {
    const type = byteAt(head, 1);
    const flags = head.readUInt16BE(2);
    const length = head.readUInt32BE(8);
    if (byteAt(head, 0) !== yamux.VERSION) return false;
    this.#unanswered = 0;
    if (type === yamux.DATA || type === yamux.WINDOW_UPDATE)
      return this.#onStream(type, flags, head.readUInt32BE(4), length, heard);
    if (type === yamux.PING && (flags & yamux.SYN) !== 0) heard.say(yamux.encodePingAnswer(length));
    if (type === yamux.GO_AWAY) heard.retire();
    return type === yamux.PING || (type === yamux.GO_AWAY && length === yamux.GO_AWAY_NORMAL);
  }

  #onStream(type: number, flags: number, id: number, length: number, heard: MuxHeard): boolean {
    if ((flags & yamux.SYN) !== 0 && !heard.onOpen(id)) return false;
    if ((flags & yamux.RST) !== 0) heard.onReset(id);
    const ends = (flags & yamux.FIN) !== 0;
    if (type === yamux.DATA) return heard.onData(id, length, ends);
    const isRight = heard.onCredit(id, length);
    if (ends) heard.onFarEnd(id);
    return isRight;
  }
}
