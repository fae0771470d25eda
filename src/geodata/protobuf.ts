/** The wire format of protocol buffers (protobuf.dev/programming-guides/encoding), read field by field; nothing is copied. */
import { ProtocolError } from "#core/errors.ts";
import { byteAt } from "#lib/at.ts";

/** Field number times eight plus wire type, as encoded. */
export const VARINT = 0;
export const LENGTH = 2;

/** Walks the fields of one message. `next` moves on; `bytes` and `number` read the present field. */
export class Fields {
  field = 0;
  wire = 0;
  /** Of a varint. */
  number = 0;
  /** Of a length-delimited field: where its bytes are. */
  start = 0;
  end = 0;
  readonly #buffer: Buffer;
  readonly #limit: number;
  #at: number;

  constructor(buffer: Buffer, start = 0, end: number = buffer.length) {
    this.#buffer = buffer;
    this.#at = start;
    this.#limit = end;
  }

  /** False at the end of the message. Throws `ProtocolError`. */
  next(): boolean {
    if (this.#at >= this.#limit) return false;
    const key = this.#varint();
    this.field = Math.floor(key / 8);
    this.wire = key % 8;
    if (this.wire === VARINT) this.number = this.#varint();
    else if (this.wire === LENGTH) {
      const length = this.#varint();
      this.start = this.#at;
      this.end = this.#skip(length);
    } else if (this.wire === 1) this.#skip(8);
    else if (this.wire === 5) this.#skip(4);
    else throw new ProtocolError("no protocol buffer: a field of unknown wire type");
    return true;
  }

  text(): string {
    return this.#buffer.toString("utf8", this.start, this.end);
  }

  bytes(): Buffer {
    return this.#buffer.subarray(this.start, this.end);
  }

  /** The fields of the message in this field. */
  inner(): Fields {
    return new Fields(this.#buffer, this.start, this.end);
  }

  #skip(length: number): number {
    const end = this.#at + length;
    if (end > this.#limit) throw new ProtocolError("a protocol buffer is cut short");
    this.#at = end;
    return end;
  }

  /** At most ten bytes; values beyond 2^53 lose their low bits, which no field here has. */
  #varint(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < 10 && this.#at < this.#limit; count++) {
      const byte = byteAt(this.#buffer, this.#at++);
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    throw new ProtocolError("a protocol buffer is cut short");
  }
}
