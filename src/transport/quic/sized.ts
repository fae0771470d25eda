/** Datagrams one behind another in one piece of memory: SIZE(2, big endian) PAYLOAD. */
import { byteAt } from "#lib/at.ts";

/** In front of each payload. */
export const SIZE_BYTES = 2;
export const MOST_PAYLOAD_BYTES = 65_535;

/** Of the payload whose size stands there. */
export function sizeAt(memory: Uint8Array, at: number): number {
  return (byteAt(memory, at) << 8) | byteAt(memory, at + 1);
}

/** Copies a payload of at most `MOST_PAYLOAD_BYTES`, which may come in two pieces; answers with the place behind it. */
export function putSized(memory: Uint8Array, at: number, payload: Uint8Array, rest: Uint8Array): number {
  const size = payload.length + rest.length;
  memory[at] = size >>> 8;
  memory[at + 1] = size;
  memory.set(payload, at + SIZE_BYTES);
  memory.set(rest, at + SIZE_BYTES + payload.length);
  return at + SIZE_BYTES + size;
}
