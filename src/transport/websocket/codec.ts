import { randomFillSync } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { mask } from "./mask.ts";
import { byteAt } from "#lib/at.ts";

const CONTINUATION = 0;
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;
const MAX_CONTROL_BYTES = 125;
const NORMAL_CLOSURE = Buffer.from([0x03, 0xe8]); // 1000
const NO_KEY = new Uint8Array(4);

/**
 * Frame (RFC 6455 §5.2): FIN(1 bit) RSV(3)=0 OPCODE(4), MASK(1) LENGTH(7 | 7+16 | 7+64), KEY(4, clients only), payload.
 * Frame and message borders mean nothing here; payload is handed on as it arrives, so no length needs a bound.
 */
export class WebSocketCodec implements StreamCodec {
  readonly #client: boolean;
  readonly #reply: (frame: Buffer) => void;
  /** The frame's head as far as it has come: at most 14 bytes. */
  readonly #head = Buffer.alloc(14);
  #headSize = 0;
  #opcode = 0;
  #left = 0;
  #phase = 0;
  #key: Uint8Array = NO_KEY;
  readonly #control = Buffer.alloc(MAX_CONTROL_BYTES);
  #controlSize = 0;

  /** `reply` sends an answer to a ping; it may drop it. */
  constructor(role: "client" | "server", reply: (frame: Buffer) => void) {
    this.#client = role === "client";
    this.#reply = reply;
  }

  seal(plain: Buffer): Buffer {
    return plain.length === 0 ? plain : this.#frame(BINARY, plain);
  }

  sealEnd(): Buffer {
    return this.#frame(CLOSE, NORMAL_CLOSURE);
  }

  open(wire: Buffer, emit: (plain: Buffer | null) => void): void {
    let at = 0;
    while (at < wire.length) {
      if (this.#left === 0) {
        at = this.#readHead(wire, at);
        const whole = this.#headSize === 0;
        if (whole && this.#left === 0 && this.#opcode >= CLOSE) this.#endControl(emit);
        continue;
      }
      const end = Math.min(wire.length, at + this.#left);
      if (!this.#client) mask(wire, at, end, this.#key, this.#phase);
      this.#phase = (this.#phase + end - at) & 3;
      this.#left -= end - at;
      if (this.#opcode < CLOSE) emit(wire.subarray(at, end));
      else {
        this.#controlSize += wire.copy(this.#control, this.#controlSize, at, end);
        if (this.#left === 0) this.#endControl(emit);
      }
      at = end;
    }
  }

  openEnd(): void {} // peers often close without a close frame

  /** Takes head bytes; when the head is whole, sets up the payload and forgets it. Answers the next offset. */
  #readHead(wire: Buffer, from: number): number {
    let at = from;
    while (at < wire.length) {
      this.#head[this.#headSize++] = byteAt(wire, at++);
      if (this.#headSize < 2 || this.#headSize < this.#headBytes()) continue;
      this.#startFrame();
      return at;
    }
    return at;
  }

  #headBytes(): number {
    const length = byteAt(this.#head, 1) & 0x7f;
    return 2 + (length === 127 ? 8 : length === 126 ? 2 : 0) + (this.#client ? 0 : 4);
  }

  #startFrame(): void {
    const head = this.#head;
    const [first, second] = [byteAt(head, 0), byteAt(head, 1)];
    const masked = (second & 0x80) !== 0;
    if ((first & 0x70) !== 0) throw new ProtocolError("a WebSocket frame with reserved bits");
    if (masked === this.#client)
      throw new ProtocolError(
        masked ? "a masked WebSocket frame from a server" : "an unmasked WebSocket frame",
      );
    this.#opcode = first & 0x0f;
    const short = second & 0x7f;
    const data = this.#opcode === CONTINUATION || this.#opcode === TEXT || this.#opcode === BINARY;
    if (!data && this.#opcode !== CLOSE && this.#opcode !== PING && this.#opcode !== PONG)
      throw new ProtocolError(`WebSocket opcode ${this.#opcode}`);
    if (!data && (short > MAX_CONTROL_BYTES || (first & 0x80) === 0))
      throw new ProtocolError("a WebSocket control frame that is long or fragmented");
    this.#left = short === 127 ? this.#longLength() : short === 126 ? head.readUInt16BE(2) : short;
    if (masked) this.#key = Uint8Array.prototype.slice.call(head, this.#headSize - 4, this.#headSize);
    this.#headSize = 0;
    this.#phase = 0;
    this.#controlSize = 0;
  }

  #longLength(): number {
    const length = this.#head.readBigUInt64BE(2);
    if (length > BigInt(Number.MAX_SAFE_INTEGER)) throw new ProtocolError("a WebSocket frame without an end");
    return Number(length);
  }

  #endControl(emit: (plain: Buffer | null) => void): void {
    const opcode = this.#opcode;
    this.#opcode = BINARY;
    if (opcode === PING) this.#reply(this.#frame(PONG, this.#control.subarray(0, this.#controlSize)));
    // Our own close frame goes out when our side has no more to say: so the other direction may still finish.
    else if (opcode === CLOSE) emit(null);
  }

  #frame(opcode: number, payload: Uint8Array): Buffer {
    const { length } = payload;
    const extended = length > 65_535 ? 8 : length > 125 ? 2 : 0;
    const headSize = 2 + extended + (this.#client ? 4 : 0);
    const out = Buffer.allocUnsafe(headSize + length);
    out[0] = 0x80 | opcode;
    out[1] = (this.#client ? 0x80 : 0) | (extended === 8 ? 127 : extended === 2 ? 126 : length);
    if (extended === 2) out.writeUInt16BE(length, 2);
    if (extended === 8) out.writeBigUInt64BE(BigInt(length), 2);
    out.set(payload, headSize);
    if (this.#client) {
      const key = randomFillSync(out.subarray(headSize - 4, headSize));
      mask(out, headSize, out.length, key, 0);
    }
    return out;
  }
}
