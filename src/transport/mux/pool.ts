import type { Duplex } from "node:stream";
import { ABORTED, asDialError, DialError } from "#core/errors.ts";
import type { DialContext } from "#core/outbound.ts";
import type { Metadata } from "#core/session.ts";
import type { MuxSession } from "./session.ts";

export interface MuxPoolOptions<S extends MuxSession> {
  /** At most so many connections; 0: no bound. */
  readonly maxConnections: number;
  /** A further connection is opened only when every one has at least so many streams; 0: as it suits. */
  readonly minStreams: number;
  /** At most so many streams on one connection; 0: what the peer allows. */
  readonly maxStreams: number;
  /** Opens one connection to the mux name. */
  readonly dial: (signal: AbortSignal, metadata: Metadata | null) => Promise<Duplex>;
  /** Starts the client's session over a new connection. `onClosed` is called once, after its last stream has closed. */
  readonly start: (wire: Duplex, onClosed: () => void) => S;
}

const DIAL_TIMEOUT_MS = 30_000;
/** Where neither connections nor streams are limited. */
const DEFAULT_MIN_STREAMS = 8;
/** A stream that lost every new connection to others takes any it can get. */
const MAX_DIALS = 8;

/** The multiplexed connections of one node. */
export class MuxPool<S extends MuxSession> implements AsyncDisposable {
  readonly #options: MuxPoolOptions<S>;
  readonly #sessions = new Set<S>();
  readonly #stop = new AbortController();
  #dialing: Promise<void> | null = null;

  constructor(options: MuxPoolOptions<S>) {
    this.#options = options;
  }

  /** Returns the result of `use` for a session that has room for one more stream. Throws `DialError`. */
  async open<T>({ signal, metadata }: DialContext, use: (session: S) => T): Promise<T> {
    for (let dials = 0; ; dials++) {
      if (signal.aborted) throw new DialError("aborted", "aborted before a mux stream was opened");
      const session = this.#choose(dials >= MAX_DIALS);
      if (session !== null) return use(session);
      if (dials > MAX_DIALS) throw new DialError("failed", "every mux connection closed at once");
      await abortable((this.#dialing ??= this.#dial(metadata)), signal);
    }
  }

  /** Idle connections end now, busy ones with their last stream. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(ABORTED);
    for (const session of this.#sessions) session.retire();
  }

  #choose(any: boolean): S | null {
    let best: S | null = null;
    for (const session of this.#sessions)
      if (session.usable && (best === null || session.streams < best.streams)) best = session;
    if (best === null || any || best.streams === 0) return best;
    return this.#wantsMore(best.streams) ? null : best;
  }

  /** Is a further connection due, when the least busy one has so many streams? */
  #wantsMore(streams: number): boolean {
    const { maxConnections, minStreams, maxStreams } = this.#options;
    if (maxStreams > 0) return streams >= maxStreams;
    if (maxConnections === 0) return streams >= (minStreams || DEFAULT_MIN_STREAMS);
    return this.#sessions.size < maxConnections && streams >= minStreams;
  }

  async #dial(metadata: Metadata | null): Promise<void> {
    try {
      const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(DIAL_TIMEOUT_MS)]);
      const wire = await this.#options.dial(signal, metadata);
      const session: S = this.#options.start(wire, () => void this.#sessions.delete(session));
      this.#sessions.add(session);
      if (this.#stop.signal.aborted) session.retire();
    } finally {
      this.#dialing = null;
    }
  }
}

/** The shared dial continues for the other waiters when one of them gives up. */
async function abortable(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(new DialError("aborted", "aborted while a mux connection was opened"));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([work, aborted.promise]);
  } catch (error) {
    throw asDialError(error, "mux");
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
