/** How frames of WebSocket begin, and those that are written whole (RFC 6455 §5.2). */
import { randomFillSync } from "node:crypto";
import { mask } from "./mask.ts";

export type WebSocketRole = "client" | "server";

export const CONTINUATION = 0;
export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;
export const MAX_CONTROL_BYTES = 125;
/** FIN RSV OPCODE(1), MASK LENGTH(1 + 8), KEY(4). */
export const MAX_HEAD_BYTES = 14;
export const KEY_BYTES = 4;
/** A client's end waits so long: servers with one close frame for both directions write nothing any more once they have read it. */
export const END_AFTER_SILENCE_MS = 1000;

const NORMAL_CLOSURE = Uint8Array.of(0x03, 0xe8); // 1000
const WORD = 2 ** 32;

/** Of a frame with so much payload; clients mask theirs. */
export function headBytes(role: WebSocketRole, payloadBytes: number): number {
  const extended = payloadBytes > 65_535 ? 8 : payloadBytes > MAX_CONTROL_BYTES ? 2 : 0;
  return 2 + extended + (role === "client" ? KEY_BYTES : 0);
}

/** A head of `headBytes`; where there is a key, the caller has to write it to the last bytes. */
export function writeHead(out: Uint8Array, role: WebSocketRole, opcode: number, payloadBytes: number): void {
  const masked = role === "client" ? 0x80 : 0;
  out[0] = 0x80 | opcode;
  if (payloadBytes <= MAX_CONTROL_BYTES) {
    out[1] = masked | payloadBytes;
    return;
  }
  const isLong = payloadBytes > 65_535;
  const extended = isLong ? 8 : 2;
  out[1] = masked | (isLong ? 127 : 126);
  const high = isLong ? Math.floor(payloadBytes / WORD) : 0;
  for (let at = 0; at < extended; at++) {
    const shift = 8 * (extended - 1 - at);
    out[2 + at] = shift < 32 ? payloadBytes >>> shift : high >>> (shift - 32);
  }
}

export function encodeFrame(role: WebSocketRole, opcode: number, payload: Uint8Array): Buffer {
  const headSize = headBytes(role, payload.length);
  const out = Buffer.allocUnsafe(headSize + payload.length);
  writeHead(out, role, opcode, payload.length);
  out.set(payload, headSize);
  if (role === "client") {
    const key = randomFillSync(out.subarray(headSize - KEY_BYTES, headSize));
    mask(out, headSize, out.length, key, 0);
  }
  return out;
}

/** Says that no more follows. */
export const encodeClose = (role: WebSocketRole): Buffer => encodeFrame(role, CLOSE, NORMAL_CLOSURE);
