/** What QUIC needs of the runtime's own libcrypto and libssl, by FFI. */
import { QuicCiphers } from "./linux/quic-cipher.ts";

export type { Memory, PacketCipher, QuicCiphers } from "./linux/quic-cipher.ts";

interface Library {
  ciphers?: QuicCiphers | null;
}
/** Of one thread, loaded at the first use and kept. */
const library: Library = {};

/** Of this thread. Null where this system or runtime has no FFI or libcrypto: there is no QUIC then. */
export function quicCiphers(): QuicCiphers | null {
  if (library.ciphers === undefined) library.ciphers = QuicCiphers.open();
  return library.ciphers;
}
