/** What QUIC needs of the runtime's own libcrypto and libssl, by FFI. */
import { QuicCiphers } from "./linux/quic-cipher.ts";
import { QuicTlsLibrary } from "./linux/quic-tls.ts";

export type { Memory, PacketCipher, QuicCiphers } from "./linux/quic-cipher.ts";
export { TlsAlert, type QuicTlsEvents, type QuicTlsLibrary, type TlsLevel } from "./linux/quic-tls.ts";

interface Library {
  ciphers?: QuicCiphers | null;
  tls?: QuicTlsLibrary | null;
}
/** Of one thread, loaded at the first use and kept. */
const library: Library = {};

/** Of this thread. Null where this system or runtime has no FFI or libcrypto: there is no QUIC then. */
export function quicCiphers(): QuicCiphers | null {
  if (library.ciphers === undefined) library.ciphers = QuicCiphers.open();
  return library.ciphers;
}

/** Of this thread. Null where this system or runtime has no FFI, or its libssl knows no QUIC. */
export function quicTls(): QuicTlsLibrary | null {
  if (library.tls === undefined) library.tls = QuicTlsLibrary.open();
  return library.tls;
}
