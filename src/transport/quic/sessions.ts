/** The connections of one node to its QUIC server, which all that goes through it shares. */
import { DialError } from "#core/errors.ts";
import { NoStream } from "./open-bidi.ts";

/** How long the end of a node waits for the last bytes of its connections. */
const MOST_END_MS = 500;

/** One connection to the server, authenticated as far as the protocol can tell. */
export interface QuicSession {
  readonly isOver: boolean;
  /** Nothing new may go by it: it is over, its server is silent, or it carries all that it may. */
  readonly isClosedToMore: boolean;
  /** Settles when it is over. */
  readonly closed: Promise<unknown>;
  /** Ends as soon as nothing is open on it, and tells the server. */
  retire(): void;
}

export interface QuicSessionsOptions<Session extends QuicSession> {
  /** Named in errors. */
  readonly node: string;
  /** Of a dial with its handshake. */
  readonly timeoutMs: number;
  /** Throws `DialError`; nothing is left open then. */
  readonly open: (signal: AbortSignal) => Promise<Session>;
}

export class QuicSessions<Session extends QuicSession> {
  readonly #options: QuicSessionsOptions<Session>;
  /** Ends dials when the node is disposed: no caller waits for them any more. */
  readonly #life = new AbortController();
  /** Not yet retired; the last one takes what is new. */
  #current: Promise<Session> | null = null;
  /** Their servers allow no stream. */
  readonly #full = new WeakSet<Session>();

  constructor(options: QuicSessionsOptions<Session>) {
    this.#options = options;
  }

  /** Opens something; where the server allows no stream, by another connection. Throws `DialError`. */
  async open<Opened>(signal: AbortSignal, open: (session: Session) => Promise<Opened>): Promise<Opened> {
    const session = await this.get(signal);
    try {
      return await open(session);
    } catch (error) {
      if (!(error instanceof NoStream)) throw error;
      this.#full.add(session);
      return open(await this.get(signal));
    }
  }

  /** Throws `DialError`. The dial goes on where one caller gives up: others may wait for it, too. */
  async get(signal: AbortSignal): Promise<Session> {
    for (let ends = 0; ;) {
      const made = this.#current ?? this.#begin();
      const session = await this.#waitFor(made, signal);
      if (!session.isClosedToMore && !this.#full.has(session)) return session;
      if (session.isOver && ++ends > 1)
        throw new DialError("failed", `${this.#options.node}: the server ends connections at once`);
      // Of those who find it so together, the first dials for all.
      if (this.#current !== made) continue;
      this.#current = null;
      session.retire();
    }
  }

  #begin(): Promise<Session> {
    const { node, open, timeoutMs } = this.#options;
    const life = this.#life.signal;
    if (life.aborted) return Promise.reject(new DialError("aborted", `${node}: the node is closed`));
    const late = AbortSignal.timeout(timeoutMs);
    const made = open(AbortSignal.any([life, late])).catch((error: unknown) => {
      if (!late.aborted || life.aborted) throw error;
      throw new DialError("timeout", `${node}: no connection within ${timeoutMs} ms`, { cause: error });
    });
    this.#current = made;
    made.catch(() => {
      if (this.#current === made) this.#current = null;
    });
    return made;
  }

  #waitFor(session: Promise<Session>, signal: AbortSignal): Promise<Session> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => reject(new DialError("aborted", `${this.#options.node}: aborted`));
      if (signal.aborted) return onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      session.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    });
  }

  /**
   * Connections that are open live on; with the last of them the one to the server ends. Waits a moment for that, so that a
   * process that ends can still tell the server. A dial that is under way is given up.
   */
  async retire(): Promise<void> {
    this.#life.abort(new DialError("aborted", `${this.#options.node}: the node is closed`));
    const session = await this.#current?.catch(() => null);
    this.#current = null;
    if (session === null || session === undefined) return;
    session.retire();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, MOST_END_MS);
    void session.closed.then(() => resolve());
    await promise;
    clearTimeout(timer);
  }
}
