/** What QUIC needs of the runtime's own libcrypto and libssl, by FFI. */
import { Blake2bLibrary } from "./linux/blake2b.ts";
import { QuicCiphers } from "./linux/quic-cipher.ts";
import { QuicTlsLibrary } from "./linux/quic-tls.ts";
import { SslClients } from "./linux/ssl-client.ts";
import { SslContexts } from "./linux/ssl-context.ts";

export type { PacketMemory } from "./linux/packet-memory.ts";
export type { PacketCipher } from "./linux/packet-cipher.ts";
export type { QuicCiphers } from "./linux/quic-cipher.ts";
export { TlsAlert, type QuicTlsEvents, type QuicTlsLibrary, type TlsLevel } from "./linux/quic-tls.ts";

/** All of one thread. */
export interface QuicLibrary {
  readonly ciphers: QuicCiphers;
  readonly tls: QuicTlsLibrary;
  readonly contexts: SslContexts;
  readonly clients: SslClients;
  /** Null: this libcrypto does not show it. */
  readonly blake2b: Blake2bLibrary | null;
}

interface Library {
  quic?: QuicLibrary | null;
}
/** Loaded at the first use and kept. */
const library: Library = {};

/** Of this thread. Null where this system or runtime has no FFI, or a libssl that knows no QUIC. */
export function quicLibrary(): QuicLibrary | null {
  if (library.quic === undefined) library.quic = open();
  return library.quic;
}

function open(): QuicLibrary | null {
  const ciphers = QuicCiphers.open();
  const tls = QuicTlsLibrary.open();
  const contexts = SslContexts.open();
  const clients = SslClients.open();
  if (ciphers === null || tls === null || contexts === null || clients === null) return null;
  return { ciphers, tls, contexts, clients, blake2b: Blake2bLibrary.open() };
}
