/** The part of HTTP that DNS needs: GET one path and take a small body, over a stream that is already dialled. */
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import type { Duplex } from "node:stream";
import { Agent, type ClientRequest, type IncomingMessage, request } from "#lib/node-http.ts";
import { DialError, asError } from "#core/errors.ts";
import { checkStatus, readBody } from "./http-body.ts";
import { abortion } from "./wire.ts";

export const MEDIA_TYPE = "application/dns-message";
const IDLE_MS = 5 * 60_000;
/** After that much silence an HTTP/2 server is asked whether it is there. */
const PING_MS = 30_000;
const PING_TIMEOUT_MS = 5000;
/** When a request is given up after this time without any byte since, the connection is taken for dead. */
const SILENCE_MS = 2000;
const HTTP1_CONNECTIONS = 2;

export interface HttpClient {
  get(path: string, signal: AbortSignal): Promise<Uint8Array>;
  /** No question comes any more; those under way may still be answered. */
  retire(): void;
  close(): void;
}

export interface HttpTarget {
  readonly text: string;
  readonly scheme: "https" | "http";
  /** Host with the port where it is not the scheme's own. */
  readonly authority: string;
  readonly authorization: string | null;
}

/** Takes the stream over. */
export function openHttp2(target: HttpTarget, stream: Duplex): HttpClient {
  return new Http2Client(target, stream);
}

class Http2Client implements HttpClient {
  readonly #target: HttpTarget;
  readonly #session: ClientHttp2Session;
  #usedAtMs = performance.now();
  #heardAtMs = 0;

  constructor(target: HttpTarget, stream: Duplex) {
    this.#target = target;
    this.#session = connect(`${target.scheme}://${target.authority}`, {
      createConnection: () => stream,
      settings: { enablePush: false },
    });
    this.#session.on("error", () => stream.destroy()); // requests in progress get the error themselves
    this.#session.on("goaway", () => this.#session.close());
    closeAtEnd(stream);
    stream.on("close", () => this.#session.destroy());
    this.#session.setTimeout(PING_MS, () => this.#probe());
  }

  get closed(): boolean {
    return this.#session.closed || this.#session.destroyed;
  }

  async get(path: string, signal: AbortSignal): Promise<Uint8Array> {
    if (this.closed) throw new DialError("failed", `connection to ${this.#target.text} is closed`);
    const askedAtMs = performance.now();
    this.#usedAtMs = askedAtMs;
    const { authorization } = this.#target;
    const stream = this.#session.request(
      { ":path": path, accept: MEDIA_TYPE, ...(authorization === null ? {} : { authorization }) },
      { endStream: true },
    );
    const head = Promise.withResolvers<number>();
    stream.once("response", (headers: IncomingHttpHeaders) => {
      this.#heardAtMs = performance.now();
      head.resolve(Number(headers[":status"]));
    });
    stream.on("error", head.reject);
    // A session that ends takes its requests with it without an error.
    stream.once("close", () =>
      head.reject(new DialError("failed", `${this.#target.text} closed the request`)),
    );
    const waiting = abortion(signal);
    try {
      const body = readBody(stream, this.#target.text);
      checkStatus(await Promise.race([head.promise, waiting.aborted]), this.#target.text);
      return await Promise.race([body, waiting.aborted]);
    } finally {
      waiting.release();
      if (!stream.closed) stream.close();
      const silent = this.#heardAtMs < askedAtMs && performance.now() - askedAtMs > SILENCE_MS;
      if (signal.aborted && silent) this.close();
    }
  }

  retire(): void {
    if (!this.closed) this.#session.close();
  }

  close(): void {
    this.#session.destroy();
  }

  #probe(): void {
    if (this.closed) return;
    if (performance.now() - this.#usedAtMs > IDLE_MS) return this.close();
    const late = setTimeout(() => this.close(), PING_TIMEOUT_MS);
    this.#session.ping(() => clearTimeout(late));
  }
}

/** `first` is used for the first request; later connections come from `redial`. */
export function openHttp1(target: HttpTarget, first: Duplex, redial: () => Promise<Duplex>): HttpClient {
  return new Http1Client(target, first, redial);
}

/** The library keeps sockets; these may be streams of proxies, which have neither probes nor timers nor handles. */
class StreamAgent extends Agent {
  constructor() {
    super({ keepAlive: true, maxSockets: HTTP1_CONNECTIONS });
  }

  override keepSocketAlive(): boolean {
    return true;
  }

  override reuseSocket(stream: Duplex, request: ClientRequest): void {
    super.reuseSocket("ref" in stream ? stream : Object.assign(stream, { ref() {} }), request);
  }
}

type Created = (error: Error | null, stream?: Duplex) => void;

class Http1Client implements HttpClient {
  readonly #target: HttpTarget;
  readonly #agent = new StreamAgent();
  /** Ends what is kept; the next request dials. */
  readonly #idle = setTimeout(() => this.#agent.destroy(), IDLE_MS).unref();
  /** Until the first request, which may never come. */
  #first: Duplex | null;

  constructor(target: HttpTarget, first: Duplex, redial: () => Promise<Duplex>) {
    this.#target = target;
    this.#first = first;
    closeAtEnd(first);
    const create = async (_: unknown, done: Created): Promise<void> => {
      const ready = this.#first;
      this.#first = null;
      try {
        if (ready !== null && !ready.destroyed) return done(null, ready);
        const stream = await redial();
        closeAtEnd(stream);
        done(null, stream);
      } catch (error) {
        done(asError(error));
      }
    };
    // The agent takes a stream from the call or from the callback; a promise is neither, so it must not be returned.
    const createConnection = (options: unknown, done: Created): void => void create(options, done);
    Object.assign(this.#agent, { createConnection });
  }

  async get(path: string, signal: AbortSignal): Promise<Uint8Array> {
    const { authority, authorization, text } = this.#target;
    this.#idle.refresh();
    const head = Promise.withResolvers<IncomingMessage>();
    const headers = {
      host: authority,
      accept: MEDIA_TYPE,
      ...(authorization === null ? {} : { authorization }),
    };
    // The name below is never resolved: the agent's own createConnection gives the stream.
    const asked = request({ agent: this.#agent, host: "dns.invalid", path, headers });
    asked.on("response", head.resolve);
    asked.on("error", head.reject);
    asked.end();
    // Not passed to the library: it would keep listening to the signal after the response, and close the connection
    // that is kept.
    const waiting = abortion(signal);
    try {
      const response = await Promise.race([head.promise, waiting.aborted]);
      const body = await Promise.race([readBody(response, text), waiting.aborted]);
      checkStatus(response.statusCode ?? 0, text);
      return body;
    } finally {
      waiting.release();
      if (signal.aborted) asked.destroy();
    }
  }

  retire(): void {} // a connection that failed is gone already, and what is kept goes by its own time

  close(): void {
    clearTimeout(this.#idle);
    this.#first?.destroy();
    this.#agent.destroy();
  }
}

/**
 * Streams are opened half-open, and the HTTP client would go on writing into one whose peer has closed. Between
 * requests no other listener handles errors; the owner of the stream sees 'close'.
 */
function closeAtEnd(stream: Duplex): void {
  stream.on("error", () => {});
  stream.on("end", () => stream.destroy());
}
