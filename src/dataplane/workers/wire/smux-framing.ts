import { byteAt } from "#lib/at.ts";
import * as smux from "#transport/mux/smux-frame.ts";
import { MuxFraming, type MuxHeard } from "./mux-framing.ts";

const NOTHING = new Uint8Array(0);

/** smux version 1: streams have no windows. */
export class SmuxFraming extends MuxFraming {
  readonly headBytes = smux.HEAD_BYTES;
  readonly dataHeadBytes = smux.HEAD_BYTES;
  readonly mostBodyBytes = smux.MAX_BODY_BYTES;
  readonly firstId = smux.FIRST_ID;
  readonly sendWindow = Infinity;
  readonly receiveWindow = Infinity;
  readonly isPatient = true;

  encodeOpen(id: number): Uint8Array {
    return smux.encodeOpen(id);
  }

  mayOpen(): boolean {
    return true; // as other implementations do
  }

  encodeAccepted(): null {
    return null;
  }

  writeDataHead(out: Uint8Array, at: number, id: number, size: number): void {
    smux.writeHead(out, at, smux.PSH, id, size);
  }

  encodeEnd(id: number): Uint8Array {
    return smux.encodeEnd(id);
  }

  override encodeHalfEnd(id: number): Uint8Array {
    return smux.encodeHalfEnd(id);
  }

  encodeLeft(id: number, endSent: boolean): Uint8Array | null {
    return endSent ? null : this.encodeEnd(id);
  }

  encodeCredit(): Uint8Array {
    return NOTHING;
  }

  keepAlive(): Uint8Array {
    return smux.encodeKeepAlive();
  }

  /** The connection's end says it. */
  encodeFinal(): Uint8Array {
    return NOTHING;
  }

  onHead(head: Buffer, heard: MuxHeard): boolean {
    const command = byteAt(head, 1);
    const length = head.readUInt16LE(2);
    const id = head.readUInt32LE(4);
    if (byteAt(head, 0) !== smux.VERSION) return false;
    if (command === smux.PSH) return heard.onData(id, length, false);
    if (length !== 0) return false;
    if (command === smux.SYN) return heard.onOpen(id);
    if (command === smux.FIN) heard.onFarEnd(id);
    else if (command === smux.NOP) heard.onKeepsReading(id);
    else return false;
    return true;
  }
}
