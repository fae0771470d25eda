import type { ByteReader } from "#net/stream/byte-reader.ts";

/** The first byte, which stays in the stream. */
export function firstByteOf(reader: ByteReader): Promise<number> {
  return reader.take((bytes) => (bytes.length === 0 ? null : { value: bytes[0] as number, size: 0 }));
}
