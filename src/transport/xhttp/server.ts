import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import { CodecStream } from "#net/codec-stream.ts";
import { PlainCodec } from "#transport/http2/plain-codec.ts";
import { basePath, hasPadding, MAX_POST_BYTES, padding } from "./padding.ts";

/** Sessions whose GET has not come by then are forgotten. */
const ATTACH_TIMEOUT_MS = 30_000;
/** Posts of one session that wait for an earlier number; one more drops the session. */
const MAX_WAITING_POSTS = 30;
/** Sessions at one time; further ones are refused with 503. */
const MAX_SESSIONS = 1024;
/** Bodies that wait for an earlier one, over all sessions: anybody can send them. Past it the post is refused with 503. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

const SESSION_ID = /^[0-9A-Za-z-]{1,64}$/;

/** The server's side of packet-up and stream-one: sessions outlive single requests and connections. */
export class XhttpServer implements Disposable {
  readonly #base: string;
  readonly #sessions = new Map<string, XhttpSession>();
  #waitingBytes = 0;

  constructor(path: string) {
    this.#base = basePath(path);
  }

  owns(path: string): boolean {
    return path.startsWith(this.#base) || `${path}/` === this.#base;
  }

  /** Answers one request for a path that it owns. A tunnel that begins with it is given to `on`. */
  serve(
    stream: ServerHttp2Stream,
    path: string,
    headers: IncomingHttpHeaders,
    on: (tunnel: Duplex) => void,
  ): void {
    const method = headers[":method"];
    const [session = "", sequence, ...more] = path.slice(this.#base.length).split("/");
    if (!hasPadding(headers.referer ?? "")) return refuse(stream, 400);
    if (session === "" && method === "POST") {
      respond(stream);
      return on(new CodecStream(stream, new PlainCodec()));
    }
    if (!SESSION_ID.test(session) || more.length > 0) return refuse(stream, 404);
    if (method === "GET" && sequence === undefined) return this.#attach(stream, session, on);
    if (method !== "POST") return refuse(stream, 405);
    if (sequence === undefined || !/^\d{1,15}$/.test(sequence)) return refuse(stream, 400);
    this.#receive(stream, session, Number(sequence));
  }

  [Symbol.dispose](): void {
    for (const session of this.#sessions.values()) if (!session.attached) session.destroy();
  }

  #session(id: string): XhttpSession | null {
    const known = this.#sessions.get(id);
    if (known !== undefined) return known;
    if (this.#sessions.size >= MAX_SESSIONS) return null;
    const session = new XhttpSession((bytes) => (this.#waitingBytes += bytes));
    this.#sessions.set(id, session);
    session.on("error", () => {});
    session.on("close", () => this.#sessions.delete(id));
    return session;
  }

  #attach(stream: ServerHttp2Stream, id: string, on: (tunnel: Duplex) => void): void {
    const session = this.#session(id);
    if (session === null) return refuse(stream, 503);
    if (session.attached) return refuse(stream, 409);
    respond(stream);
    session.attach(stream);
    on(session);
  }

  #receive(stream: ServerHttp2Stream, id: string, sequence: number): void {
    const session = this.#session(id);
    if (session === null) return refuse(stream, 503);
    const parts: Buffer[] = [];
    let size = 0;
    stream.on("data", (bytes: Buffer) => {
      size += bytes.length;
      if (size > MAX_POST_BYTES) return refuse(stream, 413);
      parts.push(bytes);
    });
    stream.on("end", () => {
      if (stream.destroyed || stream.headersSent) return;
      if (this.#waitingBytes + size > MAX_WAITING_BYTES) return refuse(stream, 503);
      session.receive(sequence, Buffer.concat(parts), (status) => {
        if (!stream.destroyed)
          stream.respond({ ":status": status, "x-padding": padding() }, { endStream: true });
      });
    });
  }
}

function respond(stream: ServerHttp2Stream): void {
  stream.respond({
    ":status": 200,
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
    "x-padding": padding(),
  });
}

function refuse(stream: ServerHttp2Stream, status: number): void {
  if (stream.destroyed || stream.headersSent) return;
  stream.respond({ ":status": status }, { endStream: true });
  stream.resume();
}

interface Post {
  readonly body: Buffer;
  readonly answer: (status: number) => void;
}

/** Up: posts in the order of their numbers, each answered when its bytes have been taken. Down: the answer to the GET. */
class XhttpSession extends Duplex {
  readonly #count: (bytes: number) => void;
  readonly #waiting = new Map<number, Post>();
  readonly #timer: NodeJS.Timeout;
  #next = 0;
  #blocked: ((status: number) => void) | null = null;
  #down: ServerHttp2Stream | null = null;
  #afterDrain: (() => void) | null = null;

  constructor(count: (bytes: number) => void) {
    super({ allowHalfOpen: true });
    this.#count = count;
    this.#timer = setTimeout(() => this.destroy(), ATTACH_TIMEOUT_MS).unref();
  }

  get attached(): boolean {
    return this.#down !== null;
  }

  attach(down: ServerHttp2Stream): void {
    clearTimeout(this.#timer);
    this.#down = down;
    down.on("drain", () => {
      const done = this.#afterDrain;
      this.#afterDrain = null;
      done?.();
    });
    down.on("close", () => this.destroy());
  }

  /** A number that was taken already is answered and dropped. */
  receive(sequence: number, body: Buffer, answer: (status: number) => void): void {
    if (this.destroyed || sequence < this.#next || this.#waiting.has(sequence)) return answer(200);
    if (this.#waiting.size >= MAX_WAITING_POSTS) {
      this.destroy();
      return answer(500);
    }
    this.#waiting.set(sequence, { body, answer });
    this.#count(body.length);
    this.#deliver();
  }

  override _read(): void {
    const answer = this.#blocked;
    this.#blocked = null;
    answer?.(200);
    this.#deliver();
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.#down === null || this.#down.write(bytes)) done();
    else this.#afterDrain = done;
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#down?.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#timer);
    for (const { body, answer } of this.#waiting.values()) {
      this.#count(-body.length);
      answer(500);
    }
    this.#waiting.clear();
    this.#blocked?.(200);
    // An answer that has been ended goes out whole; anything else is cut off.
    if (this.#down !== null && !this.#down.writableEnded) this.#down.destroy();
    done(error);
  }

  #deliver(): void {
    for (let post = this.#waiting.get(this.#next); post !== undefined; post = this.#waiting.get(this.#next)) {
      if (this.#blocked !== null) return;
      this.#waiting.delete(this.#next++);
      this.#count(-post.body.length);
      if (post.body.length === 0 || this.push(post.body)) post.answer(200);
      else this.#blocked = post.answer;
    }
  }
}
