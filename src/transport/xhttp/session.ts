import { Duplex } from "node:stream";
import type { Exchange } from "./exchange.ts";
import type { SessionBytes } from "./session-bytes.ts";

/** Sessions whose GET has not come by then are forgotten. */
const ATTACH_TIMEOUT_MS = 30_000;
/** Posts of one session that wait for an earlier number; one more drops the session. */
const MAX_WAITING_POSTS = 30;
/** The same where none is missing and the reader is slow: some clients send on whatever was answered. */
const MAX_BLOCKED_POSTS = 256;

interface Post {
  readonly body: Buffer;
  readonly answer: (status: number) => void;
}

/**
 * Up: posts in the order of their numbers, each answered when its bytes have been taken, or one request that streams.
 * Down: the answer to the GET.
 */
export class XhttpSession extends Duplex {
  readonly bytes: SessionBytes;
  /** Called when the client is known: one for each connection that has brought a request. */
  readonly #bearers = new Set<() => void>();
  readonly #waiting = new Map<number, Post>();
  readonly #timer: NodeJS.Timeout;
  #next = 0;
  #blocked: ((status: number) => void) | null = null;
  #up: Duplex | null = null;
  #down: Duplex | null = null;
  #afterDrain: (() => void) | null = null;

  /** `count` makes what it counts by. */
  constructor(count: (session: XhttpSession) => SessionBytes) {
    super({ allowHalfOpen: true });
    this.bytes = count(this);
    this.setMaxListeners(0); // one for each post that is coming
    this.#timer = setTimeout(() => this.destroy(), ATTACH_TIMEOUT_MS).unref();
    this.on("error", () => {});
  }

  get attached(): boolean {
    return this.#down !== null;
  }

  /** Is there an upload already: a stream, or posts? */
  get uploads(): boolean {
    return this.#up !== null || this.#next > 0 || this.#waiting.size > 0;
  }

  /** A connection has brought a request of it. `settle` tells that its client is known. */
  comesBy(settle: () => void): void {
    if (this.bytes.isKnown) settle();
    else this.#bearers.add(settle);
  }

  /** Its client has shown who it is. */
  settle(): void {
    if (this.bytes.isKnown || this.destroyed) return;
    this.bytes.settle();
    for (const settle of this.#bearers) settle();
    this.#bearers.clear();
  }

  attach({ body: down }: Exchange): void {
    clearTimeout(this.#timer);
    this.#down = down;
    down.on("drain", () => {
      const done = this.#afterDrain;
      this.#afterDrain = null;
      done?.();
    });
    down.on("close", () => this.destroy());
    this.#up?.resume();
    down.resume(); // a GET has no body; without this its end would not be seen
  }

  /** Takes the whole upload from one request. Only where nothing `uploads` yet. */
  stream({ body: up }: Exchange): void {
    this.#up = up;
    if (!this.attached) up.pause(); // until then no one asks for what comes up
    up.on("data", (bytes: Buffer) => {
      if (!this.push(bytes)) up.pause();
    });
    up.on("end", () => this.push(null));
    up.on("close", () => {
      if (!up.readableEnded) this.destroy();
    });
  }

  /** A number that was taken already is answered and dropped. */
  receive(sequence: number, body: Buffer, answer: (status: number) => void): void {
    if (this.destroyed || this.#up !== null || sequence < this.#next || this.#waiting.has(sequence))
      return answer(200);
    if (this.#waiting.size >= (this.#waiting.has(this.#next) ? MAX_BLOCKED_POSTS : MAX_WAITING_POSTS)) {
      this.destroy();
      return answer(500);
    }
    this.#waiting.set(sequence, { body, answer });
    this.bytes.add(body.length);
    this.#deliver();
  }

  override _read(): void {
    this.#up?.resume();
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
    this.#up?.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#timer);
    for (const { body, answer } of this.#waiting.values()) {
      this.bytes.add(-body.length);
      answer(500);
    }
    this.#waiting.clear();
    this.#bearers.clear();
    this.#blocked?.(200);
    // An answer that has been ended goes out whole; anything else is cut off.
    for (const body of [this.#down, this.#up]) if (body !== null && !body.writableEnded) body.destroy();
    done(error);
  }

  #deliver(): void {
    for (let post = this.#waiting.get(this.#next); post !== undefined; post = this.#waiting.get(this.#next)) {
      if (this.#blocked !== null) return;
      this.#waiting.delete(this.#next++);
      this.bytes.add(-post.body.length);
      if (post.body.length === 0 || this.push(post.body)) post.answer(200);
      else this.#blocked = post.answer;
    }
  }
}
