/** Memory of this thread in which packets are opened and built: one piece in most cases, more where a connection carries another. */
import type { PacketMemory, QuicCiphers } from "#platform/quic.ts";

/** No UDP payload is longer. */
const MEMORY_BYTES = 65_536;
/** Those that are not in use; a connection within a connection within a connection takes three. */
const free: PacketMemory[] = [];

/** The caller's until it is given back. */
export function takePacketMemory(ciphers: QuicCiphers): PacketMemory {
  return free.pop() ?? ciphers.allocate(MEMORY_BYTES);
}

export function givePacketMemory(memory: PacketMemory): void {
  free.push(memory);
}
