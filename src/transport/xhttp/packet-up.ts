import { once } from "node:events";
import { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { ABORTED, asError } from "#core/errors.ts";
import type { XhttpClientOptions } from "./requests.ts";

/** For the end of an answer behind the refusal of a post. */
const LAST_ANSWER_MS = 1000;
/** Of what is mostly written at once. */
const CHUNK_BYTES = 64 * 1024;
/** Of one stream, whose answers have not come, as multiples of the longest: servers bound what they keep of all streams. */
const MOST_LONG_POSTS = 2;

type PostBounds = Pick<XhttpClientOptions, "maxPostBytes" | "minPostsIntervalMs" | "mostPosts">;
/** Settles with its answer. To be given up by the signal. */
type Post = (body: Buffer, signal: AbortSignal) => Promise<void>;

/** Down: the answer to one GET. Up: numbered posts, of which some are under way; what is written meanwhile shares the next one. */
export class PacketUpStream extends Duplex {
  readonly #down: Duplex;
  readonly #post: Post;
  readonly #options: PostBounds;
  readonly #stop = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  /** Of these. */
  #bytes = 0;

  constructor(down: Duplex, post: Post, options: PostBounds) {
    // What is gathered beyond it has room in the same post.
    const most = Math.max(1, options.maxPostBytes - CHUNK_BYTES);
    super({ allowHalfOpen: true, writableHighWaterMark: most });
    this.#down = down;
    this.#post = post;
    this.#options = options;
    down.on("data", (bytes: Buffer) => {
      if (!this.push(bytes)) down.pause();
    });
    down.on("end", () => this.push(null));
    down.on("error", (error) => this.destroy(error));
    down.on("close", () => {
      if (!down.readableEnded) this.destroy(new Error("the answer broke off"));
      else if (this.readableEnded) this.destroy();
      else this.once("end", () => this.destroy());
    });
  }

  override _read(): void {
    this.#down.resume();
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    void this.#send(Buffer.from(bytes), done); // the writer may use its memory again
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    void this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  /** The protocol has no way to end the upper direction alone: the server learns of it when the GET is given up. */
  override _final(done: (error?: Error | null) => void): void {
    void this.#settle(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#stop.abort(ABORTED);
    this.#down.destroy();
    done(error);
  }

  async #send(bytes: Buffer, done: (error?: Error | null) => void): Promise<void> {
    const { maxPostBytes, minPostsIntervalMs } = this.#options;
    try {
      for (let at = 0; at < bytes.length; at += maxPostBytes) {
        while (!this.#hasRoom) await Promise.race(this.#underWay);
        this.#stop.signal.throwIfAborted();
        if (this.#down.readableEnded) break; // the server is through with this session
        this.#begin(bytes.subarray(at, at + maxPostBytes));
        const isLast = at + maxPostBytes >= bytes.length;
        if (!isLast) await delay(minPostsIntervalMs, undefined, { signal: this.#stop.signal });
      }
      this.#gather();
      done();
    } catch (error) {
      done(asError(error)); // it was given up
    }
  }

  /** What is written until the next post may begin shares it; an end does not wait. */
  #gather(): void {
    this.cork();
    setTimeout(() => this.uncork(), this.#options.minPostsIntervalMs);
  }

  async #settle(done: () => void): Promise<void> {
    await Promise.all(this.#underWay);
    done();
  }

  get #hasRoom(): boolean {
    const { maxPostBytes, mostPosts } = this.#options;
    return this.#underWay.size < mostPosts && this.#bytes <= (MOST_LONG_POSTS - 1) * maxPostBytes;
  }

  #begin(body: Buffer): void {
    this.#bytes += body.length;
    const posted = this.#post(body, this.#stop.signal)
      .catch(async (error: unknown) => {
        if (!(await this.#endsSoon())) this.destroy(asError(error));
      })
      .finally(() => {
        this.#bytes -= body.length;
        this.#underWay.delete(posted);
      });
    this.#underWay.add(posted);
  }

  /** A server that has given its answer knows the session no more: a post that it refuses then is no fault. */
  async #endsSoon(): Promise<boolean> {
    const soon = AbortSignal.any([AbortSignal.timeout(LAST_ANSWER_MS), this.#stop.signal]);
    if (!this.#down.readableEnded) await once(this.#down, "end", { signal: soon }).catch(() => {});
    return this.#down.readableEnded;
  }
}
