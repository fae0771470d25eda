import { byteAt } from "#lib/at.ts";

const ZEROS = Buffer.alloc(2048);

/**
 * Where the last byte of a protected record's plain bytes is that is not zero, which is the type of its content: what is behind it
 * is padding (RFC 8446 §5.4). Below `from`: all of them are zero. Long padding is compared, not read byte by byte.
 */
export function lastBeforePadding(bytes: Uint8Array, from: number, end: number): number {
  let last = end - 1;
  while (last - from >= ZEROS.length && byteAt(bytes, last) === 0 && endsInZeros(bytes, last + 1))
    last -= ZEROS.length;
  while (last >= from && byteAt(bytes, last) === 0) last--;
  return last;
}

function endsInZeros(bytes: Uint8Array, end: number): boolean {
  return ZEROS.compare(bytes, end - ZEROS.length, end) === 0;
}
