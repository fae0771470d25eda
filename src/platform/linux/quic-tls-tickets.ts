/** What a client keeps of a server's ticket, for its next handshake with the same server (RFC 8446 §2.2). */
import type { QuicTlsCalls } from "./quic-tls-calls.ts";

/** The library's object of a session, and when it came. */
interface Kept {
  readonly session: bigint;
  readonly atMs: number;
}

/** A server is looked at anew behind this time: its certificate may have ended, or be another one. */
const MOST_AGE_MS = 3_600_000;

/**
 * The newest session of one node. It is used once: who watches cannot tell two connections of a client by their tickets.
 * It is freed with this object.
 */
export class QuicTlsTickets {
  readonly #library: QuicTlsCalls;
  readonly #registry: FinalizationRegistry<{ kept: Kept | null }>;
  readonly #place: { kept: Kept | null } = { kept: null };

  constructor(library: QuicTlsCalls, registry: FinalizationRegistry<{ kept: Kept | null }>) {
    this.#library = library;
    this.#registry = registry;
    this.#registry.register(this, this.#place);
  }

  /** Keeps the session of a connection whose server was found to be the right one; nothing where it has no ticket yet. */
  keep(ssl: bigint, nowMs: number): void {
    const { SSL_get1_session, SSL_SESSION_is_resumable, SSL_SESSION_free } = this.#library.functions;
    const session = SSL_get1_session(ssl);
    if (session === 0n) return;
    if (SSL_SESSION_is_resumable(session) !== 1) return SSL_SESSION_free(session);
    this.#drop();
    this.#place.kept = { session, atMs: nowMs };
  }

  /** The connection offers what is kept. */
  offer(ssl: bigint, nowMs: number): void {
    const { SSL_set_session } = this.#library.functions;
    const { kept } = this.#place;
    if (kept !== null && nowMs - kept.atMs < MOST_AGE_MS) SSL_set_session(ssl, kept.session); // it takes a reference of its own
    this.#drop();
  }

  #drop(): void {
    const { kept } = this.#place;
    this.#place.kept = null;
    if (kept !== null) this.#library.functions.SSL_SESSION_free(kept.session);
  }
}

/** Makes such objects of one library. */
export function openTickets(library: QuicTlsCalls): () => QuicTlsTickets {
  const registry = new FinalizationRegistry<{ kept: Kept | null }>(({ kept }) => {
    if (kept !== null) library.functions.SSL_SESSION_free(kept.session);
  });
  return () => new QuicTlsTickets(library, registry);
}
