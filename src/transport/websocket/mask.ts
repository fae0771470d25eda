/** Frame masking (RFC 6455 §5.3): byte i is XORed with key byte i mod 4. In place, four bytes at a time. */
import { byteAt, uint32At } from "#lib/at.ts";

const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
/** Below this the view costs more than it saves. */
const WORDWISE_BYTES = 64;

/** `phase` is the position in the frame of the byte at `from`. */
export function mask(bytes: Uint8Array, from: number, to: number, key: Uint8Array, phase: number): void {
  let at = from;
  if (to - from >= WORDWISE_BYTES) {
    while (((bytes.byteOffset + at) & 3) !== 0) {
      bytes[at] = byteAt(bytes, at) ^ byteAt(key, (phase + at - from) & 3);
      at++;
    }
    const count = (to - at) >> 2;
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset + at, count);
    const word = keyWord(key, phase + at - from);
    for (let index = 0; index < count; index++) words[index] = uint32At(words, index) ^ word;
    at += count << 2;
  }
  for (; at < to; at++) bytes[at] = byteAt(bytes, at) ^ byteAt(key, (phase + at - from) & 3);
}

function keyWord(key: Uint8Array, phase: number): number {
  const a = byteAt(key, phase & 3);
  const b = byteAt(key, (phase + 1) & 3);
  const c = byteAt(key, (phase + 2) & 3);
  const d = byteAt(key, (phase + 3) & 3);
  return LITTLE_ENDIAN ? a | (b << 8) | (c << 16) | (d << 24) : (a << 24) | (b << 16) | (c << 8) | d;
}
