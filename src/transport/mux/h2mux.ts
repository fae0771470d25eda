/**
 * h2mux: every stream is a CONNECT request of an HTTP/2 connection; the request and response bodies are the two
 * directions.
 */
import {
  type ClientHttp2Session,
  connect,
  type Http2Session,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Stream,
} from "node:http2";
import type { Duplex } from "node:stream";
import { DialError, messageOf, ProtocolError } from "#core/errors.ts";
import { SESSION_BOUNDS } from "#lib/http2-server.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { onEnd } from "#net/stream/late-end.ts";
import { isGone } from "#transport/http2/gone.ts";
import { PlainCodec } from "#transport/http2/plain-codec.ts";
import { CONNECTION_WINDOW_BYTES, MAX_HEAD_BYTES, STREAM_WINDOW_BYTES } from "#transport/http2/windows.ts";
import {
  CLIENT_IDLE_MS,
  MAX_STREAMS,
  type MuxEvents,
  type OpenMuxSession,
  SERVER_IDLE_MS,
} from "./session.ts";

/** What peers ask for; their servers look at nothing of a request. */
const AUTHORITY = "localhost";
/** A ping that is not answered by the next one ends the session. */
const PING_MS = 15_000;
const CONNECT_URL = "http://mux.invalid"; // requests carry their own :authority

export class H2Client implements OpenMuxSession {
  readonly #session: ClientHttp2Session;
  readonly #timer: NodeJS.Timeout;
  #streams = 0;
  #idleSinceMs = performance.now();
  #retiring = false;
  #answered = true;

  constructor(wire: Duplex, { onClosed, log }: MuxEvents) {
    const session = connect(CONNECT_URL, {
      createConnection: () => wire,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    });
    this.#session = session;
    this.#timer = setInterval(() => this.#tick(), PING_MS).unref();
    session.on("connect", () => {
      if (!session.destroyed) session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    });
    session.on("error", (error) => log.debug(() => `mux session: ${messageOf(error)}`)); // 'close' follows
    session.on("goaway", () => (this.#retiring = true));
    followEnd(session, wire, () => {
      clearInterval(this.#timer);
      onClosed();
    });
  }

  get streams(): number {
    return this.#streams;
  }

  get usable(): boolean {
    const limit = this.#session.remoteSettings?.maxConcurrentStreams ?? Infinity;
    return !this.#retiring && !this.#session.closed && !this.#session.destroyed && this.#streams < limit;
  }

  open(): Duplex {
    if (!this.usable) throw new DialError("failed", "the mux session takes no more streams");
    const request = { ":method": "CONNECT", ":authority": AUTHORITY };
    const stream = this.#session.request(request, { endStream: false });
    this.#streams++;
    stream.on("error", () => stream.destroy()); // its user has a listener of its own
    stream.on("response", ({ ":status": status }: IncomingHttpHeaders & { ":status"?: number }) => {
      if (status !== 200)
        stream.destroy(new ProtocolError(`the mux server answered with status ${status ?? "none"}`));
    });
    stream.once("close", () => {
      this.#idleSinceMs = performance.now();
      if (--this.#streams === 0 && this.#retiring) this.#session.close();
    });
    const carried = new CodecStream(stream, new PlainCodec());
    carried.on("error", () => {}); // as in `serveH2`
    return carried;
  }

  retire(): void {
    this.#retiring = true;
    if (this.#streams === 0) this.#session.close();
  }

  close(error: Error | null): void {
    this.#session.destroy(error ?? wireEnded()); // without an error it would wait for a peer that may not read
  }

  #tick(): void {
    if (this.#streams === 0) {
      if (performance.now() - this.#idleSinceMs > CLIENT_IDLE_MS) this.retire();
      return;
    }
    if (!this.#answered) return this.close(new ProtocolError("the mux server no longer answers"));
    this.#answered = false;
    if (this.#session.destroyed) return; // its 'close' waits for the connection's
    this.#session.ping(() => (this.#answered = true));
  }
}

function wireEnded(): Error {
  return new Error("the connection below has ended");
}

/** Session and connection end together: on what is no socket, the library looks for neither its end nor its close. */
function followEnd(session: Http2Session, wire: Duplex, onClosed: () => void): void {
  onEnd(wire, () => {
    session.destroy(wireEnded());
    wire.destroy();
  });
  wire.on("close", () => {
    session.destroy();
    onClosed();
  });
  session.on("close", () => wire.destroy());
}

/** Serves the connection until its end. Throws nothing. */
export function serveH2(wire: Duplex, { onStream, onClosed, log }: MuxEvents): void {
  const session = performServerHandshake(wire, {
    ...SESSION_BOUNDS,
    settings: {
      initialWindowSize: STREAM_WINDOW_BYTES,
      maxConcurrentStreams: MAX_STREAMS,
      maxHeaderListSize: MAX_HEAD_BYTES,
    },
  });
  session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
  session.setTimeout(SERVER_IDLE_MS, () => session.close()); // waits for open streams
  session.on("error", (error) => log.debug(() => `mux session: ${messageOf(error)}`)); // 'close' follows
  followEnd(session, wire, onClosed);
  session.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on("error", () => stream.destroy()); // its user has a listener of its own
    if (isGone(stream)) return;
    if (headers[":method"] !== "CONNECT") return stream.respond({ ":status": 405 }, { endStream: true });
    stream.respond({ ":status": 200 }); // at once: clients give up after five seconds
    const carried = new CodecStream(stream, new PlainCodec());
    carried.on("error", () => {}); // the stream's user attaches its listener later; 'close' follows this event
    onStream?.(carried);
  });
}
