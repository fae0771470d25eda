/** Packet numbers as their low bytes (RFC 9000 §17.1, appendix A). */
import type { WireWriter } from "./writer.ts";

/** Two or four bytes: packets of a run, which the kernel cuts, have one size. `largestAcked` -1: none yet. */
export function numberBytesFor(number: number, largestAcked: number): number {
  return number - largestAcked < 0x7000 ? 2 : 4;
}

export function writePacketNumber(out: WireWriter, number: number, bytes: number): void {
  if (bytes === 4) out.uint16((number >>> 16) & 0xffff);
  out.uint16(number & 0xffff);
}

/** The number nearest to the one that is expected next. `largest` -1: none was received. */
export function expandPacketNumber(low: number, bytes: number, largest: number): number {
  const window = bytes === 4 ? 2 ** 32 : 1 << (8 * bytes);
  const expected = largest + 1;
  const near = expected - (expected % window) + low;
  if (near <= expected - window / 2) return near + window;
  if (near > expected + window / 2 && near >= window) return near - window;
  return near;
}
