import { ProtocolError } from "#core/errors.ts";
import type { WebSocketFrame } from "#core/wire-state.ts";
import { byteAt } from "#lib/at.ts";
import {
  BINARY,
  CLOSE,
  CONTINUATION,
  KEY_BYTES,
  MAX_CONTROL_BYTES,
  MAX_HEAD_BYTES,
  PING,
  PONG,
  TEXT,
  type WebSocketRole,
} from "./frames.ts";
import { mask } from "./mask.ts";

/** What comes of frames. */
export interface FrameSink {
  /** Unmasked, where it lay in the bytes that are being read. */
  onPayload(from: number, to: number): void;
  /** To be answered with the same; lent for the call. */
  onPing(payload: Uint8Array): void;
  /** The peer says no more. */
  onClose(): void;
}

/**
 * Takes frames (RFC 6455 §5.2) apart: FIN(1 bit) RSV(3)=0 OPCODE(4), MASK(1) LENGTH(7 | 7+16 | 7+64), KEY(4, clients
 * only), payload. Frame and message borders mean nothing here; payload is handed on as it arrives, so no length needs a
 * bound.
 */
export class FrameReader {
  readonly #isMasked: boolean;
  readonly #sink: FrameSink;
  /** As far as it has come. */
  readonly #head = Buffer.alloc(MAX_HEAD_BYTES);
  #headSize = 0;
  #opcode = BINARY;
  #left = 0;
  #phase = 0;
  readonly #key = new Uint8Array(KEY_BYTES);
  readonly #control = new Uint8Array(MAX_CONTROL_BYTES);
  #controlSize = 0;

  /** `role`: who reads. `within`: where another reader has stopped. */
  constructor(role: WebSocketRole, sink: FrameSink, within: WebSocketFrame | null = null) {
    this.#isMasked = role === "server";
    this.#sink = sink;
    if (within === null) return;
    this.#head.set(within.head);
    this.#headSize = within.head.length;
    this.#opcode = within.opcode;
    this.#left = within.left;
    this.#phase = within.phase;
    this.#key.set(within.key);
    this.#control.set(within.control);
    this.#controlSize = within.control.length;
  }

  /** A copy: within which frame the reading is. */
  get within(): WebSocketFrame {
    return {
      head: Uint8Array.from(this.#head.subarray(0, this.#headSize)),
      opcode: this.#opcode,
      left: this.#left,
      phase: this.#phase,
      key: this.#key.slice(),
      control: this.#control.slice(0, this.#controlSize),
    };
  }

  /** Payload that is still to come of the present frame; 0: none, something else comes next. */
  get payloadBytes(): number {
    return this.#opcode < CLOSE ? this.#left : 0;
  }

  /** Where that is 0: what comes before the next payload at least. */
  get missingBytes(): number {
    if (this.#left > 0) return this.#left;
    return Math.max(2, this.#headSize < 2 ? 0 : this.#headBytes()) - this.#headSize;
  }

  /** Throws `ProtocolError`. */
  read(bytes: Uint8Array, from: number, end: number): void {
    for (let at = from; at < end;)
      at = this.#left === 0 ? this.#readHead(bytes, at, end) : this.#readBody(bytes, at, end);
  }

  #readBody(bytes: Uint8Array, at: number, end: number): number {
    const to = Math.min(end, at + this.#left);
    if (this.#isMasked) mask(bytes, at, to, this.#key, this.#phase);
    this.#phase = (this.#phase + to - at) & 3;
    this.#left -= to - at;
    if (this.#opcode < CLOSE) this.#sink.onPayload(at, to);
    else {
      this.#control.set(bytes.subarray(at, to), this.#controlSize);
      this.#controlSize += to - at;
      if (this.#left === 0) this.#endControl();
    }
    return to;
  }

  /** Takes bytes of a head; when it is whole, the payload is next. Answers with the next offset. */
  #readHead(bytes: Uint8Array, from: number, end: number): number {
    for (let at = from; at < end;) {
      this.#head[this.#headSize++] = byteAt(bytes, at++);
      if (this.#headSize < 2 || this.#headSize < this.#headBytes()) continue;
      this.#startFrame();
      return at;
    }
    return end;
  }

  #headBytes(): number {
    const length = byteAt(this.#head, 1) & 0x7f;
    return 2 + (length === 127 ? 8 : length === 126 ? 2 : 0) + (this.#isMasked ? KEY_BYTES : 0);
  }

  #startFrame(): void {
    const head = this.#head;
    const [first, second] = [byteAt(head, 0), byteAt(head, 1)];
    const masked = (second & 0x80) !== 0;
    if ((first & 0x70) !== 0) throw new ProtocolError("a WebSocket frame with reserved bits");
    if (masked !== this.#isMasked)
      throw new ProtocolError(
        masked ? "a masked WebSocket frame from a server" : "an unmasked WebSocket frame",
      );
    this.#opcode = checkOpcode(first, second & 0x7f);
    this.#left = this.#length(second & 0x7f);
    if (masked) head.copy(this.#key, 0, this.#headSize - KEY_BYTES, this.#headSize);
    this.#headSize = this.#phase = this.#controlSize = 0;
    if (this.#left === 0 && this.#opcode >= CLOSE) this.#endControl();
  }

  #length(short: number): number {
    if (short < 126) return short;
    if (short === 126) return this.#head.readUInt16BE(2);
    const length = this.#head.readUInt32BE(2) * 2 ** 32 + this.#head.readUInt32BE(6);
    if (length > Number.MAX_SAFE_INTEGER) throw new ProtocolError("a WebSocket frame without an end");
    return length;
  }

  #endControl(): void {
    const opcode = this.#opcode;
    this.#opcode = BINARY;
    if (opcode === PING) this.#sink.onPing(this.#control.subarray(0, this.#controlSize));
    else if (opcode === CLOSE) this.#sink.onClose();
    this.#controlSize = 0;
  }
}

/** The opcode, where the frame may be one. */
function checkOpcode(first: number, short: number): number {
  const opcode = first & 0x0f;
  if (opcode === CONTINUATION || opcode === TEXT || opcode === BINARY) return opcode;
  if (opcode !== CLOSE && opcode !== PING && opcode !== PONG)
    throw new ProtocolError(`WebSocket opcode ${opcode}`);
  if (short > MAX_CONTROL_BYTES || (first & 0x80) === 0)
    throw new ProtocolError("a WebSocket control frame that is long or fragmented");
  return opcode;
}

/** Where reading begins. */
export const FIRST_FRAME: WebSocketFrame = new FrameReader("client", {
  onPayload() {},
  onPing() {},
  onClose() {},
}).within;
