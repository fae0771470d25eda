import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { connect } from "node:http2";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ABORTED, asDialError, DialError } from "#core/errors.ts";
import type { Metadata } from "#core/session.ts";
import { Silence } from "#transport/mux/silence.ts";
import type { Secured } from "#transport/security.ts";
import { CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES } from "./windows.ts";

export interface Http2PoolOptions {
  /** Opens one connection to the server. */
  readonly dial: (signal: AbortSignal, metadata: Metadata | null) => Promise<Secured>;
  /** At most so many connections; 0: no bound of its own. */
  readonly maxConnections: number;
  /** A further connection is opened only when every one has at least so many streams. */
  readonly minStreams: number;
  /** At most so many streams on one connection; 0: what the server allows. */
  readonly maxStreams: number;
  /** 0: no pings. */
  readonly pingIntervalMs: number;
}

const DIAL_TIMEOUT_MS = 30_000;
/** A connection without streams is kept so long for the next one. */
const IDLE_MS = 30_000;
const AUTHORITY = "http://transport.invalid"; // requests carry their own :authority

interface Link {
  readonly session: ClientHttp2Session;
  /** Of bytes that have come. */
  readonly counted: () => number;
  /** Of them, when that was looked at last. */
  heardBytes: number;
  readonly silence: Silence;
  streams: number;
  idleTimer: NodeJS.Timeout | null;
  pingTimer: NodeJS.Timeout | null;
}

/** HTTP/2 connections to one server, shared by the streams of one node. */
export class Http2Pool implements AsyncDisposable {
  readonly #options: Http2PoolOptions;
  readonly #links = new Set<Link>();
  #dialing: Promise<Link> | null = null;
  readonly #stop = new AbortController();

  constructor(options: Http2PoolOptions) {
    this.#options = options;
  }

  /** Opens a stream. Throws `DialError`. */
  async request(
    headers: OutgoingHttpHeaders,
    signal: AbortSignal,
    metadata: Metadata | null,
  ): Promise<ClientHttp2Stream> {
    const link = this.#choose() ?? (await abortable((this.#dialing ??= this.#dial(metadata)), signal));
    if (link.session.closed || link.session.destroyed)
      throw new DialError("failed", "the HTTP/2 connection closed before the stream was opened");
    const stream = link.session.request(headers, { endStream: false });
    stream.on("error", () => {}); // its user has a listener of its own, but later than the session may break
    this.#track(link, stream);
    return stream;
  }

  /** Ends idle connections; busy ones end with their last stream. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(ABORTED);
    for (const link of this.#links) link.session.close();
  }

  #choose(): Link | null {
    let best: Link | null = null;
    for (const link of this.#links) {
      const limit = Math.min(
        this.#options.maxStreams || Infinity,
        link.session.remoteSettings.maxConcurrentStreams ?? Infinity,
      );
      if (link.streams >= limit || isSilent(link)) continue;
      if (best === null || link.streams < best.streams) best = link;
    }
    if (best === null) return null;
    const full = this.#links.size >= (this.#options.maxConnections || Infinity);
    const spread = this.#options.maxConnections > 1 && best.streams >= Math.max(1, this.#options.minStreams);
    return spread && !full ? null : best;
  }

  async #dial(metadata: Metadata | null): Promise<Link> {
    try {
      const timeout = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(DIAL_TIMEOUT_MS)]);
      const { stream } = await this.#options.dial(timeout, metadata);
      const session = connect(AUTHORITY, {
        createConnection: () => stream,
        settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
      });
      // Half open below, or no socket at all: the session would not notice.
      stream.on("end", () => session.destroy()).on("close", () => session.destroy());
      return this.#adopt(session, counterOf(stream));
    } finally {
      this.#dialing = null;
    }
  }

  #adopt(session: ClientHttp2Session, counted: () => number): Link {
    session.on("connect", () => {
      if (!session.destroyed) session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    });
    const counts = { streams: 0, heardBytes: 0, silence: new Silence() };
    const link: Link = { session, counted, ...counts, idleTimer: null, pingTimer: null };
    this.#links.add(link);
    const forget = () => {
      this.#links.delete(link);
      if (link.pingTimer !== null) clearInterval(link.pingTimer);
      if (link.idleTimer !== null) clearTimeout(link.idleTimer);
    };
    session.on("error", forget).on("goaway", forget).on("close", forget); // its streams report the error
    const { pingIntervalMs } = this.#options;
    if (pingIntervalMs > 0)
      link.pingTimer = setInterval(() => {
        if (!session.destroyed) session.ping(() => {}); // its 'close' waits for the connection's
      }, pingIntervalMs).unref();
    return link;
  }

  #track(link: Link, stream: ClientHttp2Stream): void {
    link.streams++;
    link.silence.asked();
    if (link.idleTimer !== null) clearTimeout(link.idleTimer);
    stream.once("close", () => {
      if (--link.streams > 0) return;
      if (!isSilent(link)) link.silence.unused();
      if (this.#stop.signal.aborted || !this.#links.has(link)) link.session.close();
      else link.idleTimer = setTimeout(() => link.session.close(), IDLE_MS).unref();
    });
  }
}

/** The runtime reads a socket below the streams that it shows. */
function counterOf(stream: Duplex): () => number {
  if (stream instanceof Socket) return () => stream.bytesRead;
  let bytes = 0;
  stream.on("data", (piece: Buffer) => void (bytes += piece.length));
  return () => bytes;
}

function isSilent(link: Link): boolean {
  const bytes = link.counted();
  if (bytes !== link.heardBytes) link.silence.heard();
  link.heardBytes = bytes;
  return link.silence.isLong;
}

/** The shared dial continues for the other waiters when one of them gives up. */
async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () =>
    aborted.reject(new DialError("aborted", "aborted while the HTTP/2 connection was opened"));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    if (signal.aborted) onAbort();
    return await Promise.race([work, aborted.promise]);
  } catch (error) {
    throw asDialError(error, "HTTP/2");
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
