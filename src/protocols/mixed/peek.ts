import type { ByteReader } from "#net/stream/byte-reader.ts";
import { byteAt } from "#lib/at.ts";

/** The first byte, which stays in the stream. */
export function firstByteOf(reader: ByteReader): Promise<number> {
  return reader.take((bytes) => (bytes.length === 0 ? null : { value: byteAt(bytes, 0), size: 0 }));
}
