/** What a client keeps of a server's tickets, for its next handshakes with the same server (RFC 8446 §2.2). */

export const TICKET_CALLS = {
  SSL_get1_session: { arguments: ["pointer"], return: "pointer" },
  SSL_set_session: { arguments: ["pointer", "pointer"], return: "i32" },
  SSL_SESSION_is_resumable: { arguments: ["pointer"], return: "i32" },
  SSL_SESSION_dup: { arguments: ["pointer"], return: "pointer" },
  SSL_SESSION_free: { arguments: ["pointer"], return: "void" },
} as const;

interface TicketFunctions {
  SSL_get1_session(ssl: bigint): bigint;
  SSL_set_session(ssl: bigint, session: bigint): number;
  SSL_SESSION_is_resumable(session: bigint): number;
  SSL_SESSION_dup(session: bigint): bigint;
  SSL_SESSION_free(session: bigint): void;
}

/** The library's object of a session, and when it came. */
interface Kept {
  readonly session: bigint;
  readonly atMs: number;
  /** What the server said of itself within TLS; null: nothing that is kept. */
  readonly said: Uint8Array | null;
}

/** A server is looked at anew behind this time: its certificate may have ended, or be another one. */
const MOST_AGE_MS = 3_600_000;
/** Each is some kilobytes. Connections that begin at the same time need one each. */
const MOST_KEPT = 8;

/**
 * The newest sessions of one node. Each is used once: who watches cannot tell two connections of a client by their tickets.
 * They are freed with this object.
 */
export class SslTickets {
  readonly #functions: TicketFunctions;
  readonly #kept: Kept[] = [];
  #isClosed = false;

  constructor(functions: TicketFunctions, registry: FinalizationRegistry<readonly Kept[]>) {
    this.#functions = functions;
    registry.register(this, this.#kept);
  }

  /** Keeps the session of a connection whose server was found to be the right one; nothing where it has no ticket yet. */
  keep(ssl: bigint, nowMs: number, said: Uint8Array | null = null): void {
    const { SSL_get1_session, SSL_SESSION_is_resumable, SSL_SESSION_dup, SSL_SESSION_free } = this.#functions;
    const own = this.#isClosed ? 0n : SSL_get1_session(ssl);
    if (own === 0n) return;
    // A copy: a connection that ends without a goodbye spoils its own.
    const session = SSL_SESSION_is_resumable(own) === 1 ? SSL_SESSION_dup(own) : 0n;
    SSL_SESSION_free(own);
    if (session === 0n) return;
    if (this.#kept.push({ session, atMs: nowMs, said }) > MOST_KEPT) this.#free(this.#kept.shift());
  }

  /** The connection offers the newest one that is kept. Answers what was kept with it. */
  offer(ssl: bigint, nowMs: number): Uint8Array | null {
    const newest = this.#kept.pop();
    if (newest === undefined) return null;
    // The connection takes a reference of its own.
    const isFresh = nowMs - newest.atMs < MOST_AGE_MS;
    if (isFresh) this.#functions.SSL_set_session(ssl, newest.session);
    this.#free(newest);
    return isFresh ? newest.said : null;
  }

  /** Nothing is kept any more. */
  close(): void {
    this.#isClosed = true;
    while (this.#kept.length > 0) this.#free(this.#kept.pop());
  }

  #free(kept: Kept | undefined): void {
    if (kept !== undefined) this.#functions.SSL_SESSION_free(kept.session);
  }
}

/** Makes such objects of one library. */
export function openTickets(functions: TicketFunctions): () => SslTickets {
  const registry = new FinalizationRegistry<readonly Kept[]>((all) => {
    for (const { session } of all) functions.SSL_SESSION_free(session);
  });
  return () => new SslTickets(functions, registry);
}
