/**
 * DNS over a stream (TCP, RFC 7766; TLS, RFC 7858): connections are reused and carry several queries at once, matched
 * by id. Answers may come in any order.
 */
import type { Duplex } from "node:stream";
import { DialError, ProtocolError, asError } from "#core/errors.ts";
import type { NameserverOptions } from "#core/dns-options.ts";
import { FrameReader, frameOf } from "#dns/frames.ts";
import { dialStream, dialTls, inDialTime } from "./dial.ts";
import type { Upstream, UpstreamEnv } from "./upstream.ts";
import { abortion, checkAnswers, idOf, randomId, withId } from "./wire.ts";

/** At the bound no further connection is opened; queries share those that exist. */
const MAX_CONNECTIONS = 8;
/** Below this a connection takes one more query before another is opened. */
const SHARED_QUERIES = 32;
/** At the bound a query is refused: 8 connections × 1024 in flight means that the server is dead. */
const MAX_QUERIES = 1024;
const IDLE_MS = 10_000;
/** When a query is given up after this time without any byte since, the connection is taken for dead. */
const SILENCE_MS = 2000;

export function openTcpUpstream(server: NameserverOptions, env: UpstreamEnv): Upstream {
  return new StreamUpstream(server, (signal) => dialStream(server, env, signal));
}

export function openTlsUpstream(server: NameserverOptions, env: UpstreamEnv): Upstream {
  return new StreamUpstream(server, (signal) => dialTls(server, env, [], signal));
}

type Dial = (signal: AbortSignal) => Promise<Duplex>;

class StreamUpstream implements Upstream {
  readonly text: string;
  readonly fixed = false;
  readonly #reuse: boolean;
  readonly #dial: Dial;
  /** The last one is the newest and is preferred. */
  #connections: Connection[] = [];

  constructor(server: NameserverOptions, dial: Dial) {
    this.text = server.text;
    this.#reuse = !server.disableReuse;
    this.#dial = dial;
  }

  async exchange(query: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    let isAlone = !this.#reuse;
    for (;;) {
      const connection = isAlone ? new Connection(this.text, this.#dial) : this.#pick();
      const wasProven = connection.proven;
      try {
        return await connection.ask(query, signal);
      } catch (error) {
        // One that answered and then died may have done so unnoticed; another one gives the real result.
        if (!connection.proven || signal.aborted || !connection.closed) throw error;
        // Some servers answer one query of a connection and close it: this one was asked before that answer came.
        isAlone ||= !wasProven;
      } finally {
        if (isAlone) connection.close();
      }
    }
  }

  #pick(): Connection {
    const open = this.#connections.filter((connection) => !connection.closed);
    this.#connections = open;
    const free = open.findLast((connection) => connection.load < SHARED_QUERIES);
    if (free !== undefined) return free;
    if (open.length >= MAX_CONNECTIONS)
      return open.reduce((best, next) => (next.load < best.load ? next : best));
    const fresh = new Connection(this.text, this.#dial);
    open.push(fresh);
    return fresh;
  }

  reset(): void {
    const given = this.#connections;
    this.#connections = [];
    for (const connection of given) connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.reset();
  }
}

interface Pending {
  readonly query: Uint8Array;
  resolve(answer: Uint8Array): void;
  reject(error: Error): void;
}

class Connection {
  closed = false;
  /** Has answered at least once, so it may be an old acquaintance that is gone. */
  proven = false;
  readonly #text: string;
  readonly #pending = new Map<number, Pending>();
  readonly #abort = new AbortController();
  readonly #stream: Promise<Duplex>;
  #idle: NodeJS.Timeout | null = null;
  /** Infinity while it is being dialled, when no byte can arrive. */
  #openedAtMs = Infinity;
  #heardAtMs = 0;

  constructor(text: string, dial: Dial) {
    this.#text = text;
    this.#stream = inDialTime(text, this.#abort.signal, dial).then((stream) => this.#opened(stream));
    this.#stream.catch((error: Error) => this.#fail(error));
  }

  get load(): number {
    return this.#pending.size;
  }

  async ask(query: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    if (this.#pending.size >= MAX_QUERIES) throw new DialError("failed", `${this.#text} answers too slowly`);
    if (this.#idle !== null) clearTimeout(this.#idle);
    let id = randomId();
    while (this.#pending.has(id)) id = randomId();
    const message = withId(query, id);
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    promise.catch(() => {}); // the race below may have ended by the signal
    this.#pending.set(id, { query: message, resolve, reject });
    const askedAtMs = performance.now();
    const waiting = abortion(signal);
    try {
      const stream = await Promise.race([this.#stream, waiting.aborted]);
      stream.write(frameOf(message));
      return await Promise.race([promise, waiting.aborted]);
    } finally {
      waiting.release();
      this.#pending.delete(id);
      if (signal.aborted && this.#silentSince(askedAtMs)) this.#fail(this.#noAnswer());
      this.#rest(signal.aborted && !this.proven);
    }
  }

  close(): void {
    this.#fail(new DialError("aborted", `connection to ${this.#text} closed`));
  }

  /** The query that was given up got nothing, nor did any other since: those that still wait would not either. */
  #silentSince(askedAtMs: number): boolean {
    const sinceMs = Math.max(askedAtMs, this.#openedAtMs);
    return this.#heardAtMs < sinceMs && performance.now() - sinceMs > SILENCE_MS;
  }

  #noAnswer(): DialError {
    return new DialError("timeout", `${this.#text} has not answered for ${SILENCE_MS} ms`);
  }

  /** No query waits any more: the connection is kept for a while, unless it never worked. */
  #rest(useless: boolean): void {
    if (this.#pending.size > 0 || this.closed) return;
    if (useless) return this.close();
    this.#idle = setTimeout(() => this.close(), IDLE_MS);
    this.#idle.unref();
  }

  #opened(stream: Duplex): Duplex {
    stream.on("error", (error) => this.#fail(error));
    stream.on("close", () => this.#fail(new DialError("failed", `${this.#text} closed the connection`)));
    stream.on("end", () => this.#fail(new DialError("failed", `${this.#text} ended the connection`)));
    if (this.closed) {
      stream.destroy();
      throw new DialError("aborted", `connection to ${this.#text} closed`);
    }
    this.#openedAtMs = performance.now();
    const frames = new FrameReader((frame) => this.#answered(frame));
    stream.on("data", (chunk: Buffer) => frames.push(chunk));
    return stream;
  }

  #answered(frame: Uint8Array): void {
    this.#heardAtMs = performance.now();
    const pending = frame.length < 12 ? undefined : this.#pending.get(idOf(frame));
    if (frame.length < 12) return this.#fail(new ProtocolError(`${this.#text} sent less than a DNS header`));
    if (pending === undefined) return; // too late: the query was given up
    try {
      checkAnswers(pending.query, frame);
    } catch (error) {
      return pending.reject(asError(error));
    }
    this.proven = true;
    pending.resolve(frame);
  }

  #fail(error: Error): void {
    if (this.closed) return;
    this.closed = true;
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#abort.abort(error);
    this.#stream.then(
      (stream) => stream.destroy(),
      () => {}, // never opened: nothing to close
    );
    for (const pending of this.#pending.values()) pending.reject(error);
  }
}
