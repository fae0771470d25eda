import type { Duplex } from "node:stream";
import { ByteReader } from "#net/byte-reader.ts";

/** The first byte, which stays in the stream. Has the deadline of a handshake. */
export async function firstByteOf(stream: Duplex): Promise<number> {
  using reader = new ByteReader(stream);
  return await reader.take((bytes) => (bytes.length === 0 ? null : { value: bytes[0] as number, size: 0 }));
}
