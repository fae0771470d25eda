import { byteAt } from "#lib/at.ts";
import {
  encodeHead,
  FIN,
  FIRST_ID,
  HEAD_BYTES,
  MAX_BODY_BYTES,
  NOP,
  PSH,
  VERSION,
  SYN,
  writeHead,
} from "#transport/mux/smux-frame.ts";
import type { MuxFraming, MuxHeard } from "./mux-framing.ts";

const NOTHING = new Uint8Array(0);

/** smux version 1: streams have no windows. */
export class SmuxFraming implements MuxFraming {
  readonly headBytes = HEAD_BYTES;
  readonly mostBodyBytes = MAX_BODY_BYTES;
  readonly firstId = FIRST_ID;
  readonly sendWindow = Infinity;
  readonly receiveWindow = Infinity;
  readonly isPatient = true;

  encodeOpen(id: number): Uint8Array {
    return encodeHead(SYN, id, 0);
  }

  mayOpen(): boolean {
    return true; // as other implementations do
  }

  encodeAccepted(): null {
    return null;
  }

  writeDataHead(out: Uint8Array, at: number, id: number, size: number): void {
    writeHead(out, at, PSH, id, size);
  }

  encodeEnd(id: number): Uint8Array {
    return encodeHead(FIN, id, 0);
  }

  encodeLeft(id: number, endSent: boolean): Uint8Array | null {
    return endSent ? null : this.encodeEnd(id);
  }

  encodeCredit(): Uint8Array {
    return NOTHING;
  }

  /** Peers do not answer it: it only keeps entries of NAT alive. */
  keepAlive(): Uint8Array {
    return encodeHead(NOP, 0, 0);
  }

  /** The connection's end says it. */
  encodeFinal(): Uint8Array {
    return NOTHING;
  }

  onHead(head: Buffer, heard: MuxHeard): boolean {
    const command = byteAt(head, 1);
    const length = head.readUInt16LE(2);
    const id = head.readUInt32LE(4);
    if (byteAt(head, 0) !== VERSION) return false;
    if (command === PSH) return heard.onData(id, length, false);
    if (length !== 0) return false;
    if (command === SYN) return heard.onOpen(id);
    if (command === FIN) heard.onFarEnd(id);
    return command === FIN || command === NOP;
  }
}
