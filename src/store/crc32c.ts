import { uint32At, byteAt } from "#lib/at.ts";

/** CRC-32C (Castagnoli), as iSCSI has it: RFC 3720 §12.1, reflected polynomial 0x82F63B78. `123456789` gives E3069283. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc >>> 0;
});

/** Of the pieces one after the other, as an unsigned 32-bit number. */
export function crc32c(...pieces: readonly Uint8Array[]): number {
  let crc = 0xffffffff;
  for (const piece of pieces)
    for (let at = 0; at < piece.length; at++)
      crc = uint32At(TABLE, (crc ^ byteAt(piece, at)) & 0xff) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
