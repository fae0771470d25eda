import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { ABORTED, asError } from "#core/errors.ts";
import type { DialContext } from "#core/outbound.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { PlainCodec } from "#transport/http2/plain-codec.ts";
import type { HttpClient } from "#transport/http-client.ts";
import { MessagePair } from "#transport/message-pair.ts";
import { requestOf, streamedRequest, type XhttpClientOptions } from "./requests.ts";

/** The dial's signal no longer applies after the dial; posts have this timeout instead. */
const POST_TIMEOUT_MS = 60_000;
/** For the end of an answer behind the refusal of a post. */
const LAST_ANSWER_MS = 1000;

/** Throws `DialError`. */
export async function openXhttpStream(
  http: HttpClient,
  options: XhttpClientOptions,
  context: DialContext,
): Promise<Duplex> {
  const { mode } = options;
  const streamed = (suffix: string) => http.open(streamedRequest(options, suffix), context);
  if (mode === "stream-one") return new CodecStream(await streamed(""), new PlainCodec());
  const session = randomUUID();
  const down = await http.open(requestOf(options, { method: "GET", suffix: session, body: null }), context);
  if (mode === "stream-up") {
    const up = await streamed(session).catch((error) => {
      down.destroy();
      throw error;
    });
    up.resume(); // filler
    return new MessagePair(up, down);
  }
  let sequence = 0;
  const post = async (body: Buffer): Promise<void> => {
    const until = { signal: AbortSignal.timeout(POST_TIMEOUT_MS), metadata: context.metadata };
    const suffix = `${session}/${sequence++}`;
    await answered(await http.open(requestOf(options, { method: "POST", suffix, body }), until));
  };
  return new PacketUpStream(down, post, options);
}

function answered(exchange: Duplex): Promise<void> {
  return new Promise((resolve, reject) => {
    exchange.on("error", reject);
    exchange.on("close", () => reject(new Error("the server gave no answer to a post")));
    exchange.on("end", resolve);
    exchange.resume();
  });
}

/** Down: the answer to one GET. Up: numbered posts, one at a time; what is written meanwhile shares the next one. */
class PacketUpStream extends Duplex {
  readonly #down: Duplex;
  readonly #post: (body: Buffer) => Promise<void>;
  readonly #options: XhttpClientOptions;
  readonly #stop = new AbortController();

  constructor(down: Duplex, post: (body: Buffer) => Promise<void>, options: XhttpClientOptions) {
    super({ allowHalfOpen: true, writableHighWaterMark: options.maxPostBytes });
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
    void this.#send(bytes, done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    void this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  // The protocol has no way to end the upper direction alone: the server learns of it when the GET is given up.

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#stop.abort(ABORTED);
    this.#down.destroy();
    done(error);
  }

  async #send(bytes: Buffer, done: (error?: Error | null) => void): Promise<void> {
    const { maxPostBytes, minPostsIntervalMs } = this.#options;
    if (this.#down.readableEnded) return done(); // the server is through with this session
    try {
      for (let at = 0; at < bytes.length; at += maxPostBytes) {
        const pause = delay(minPostsIntervalMs, undefined, { signal: this.#stop.signal });
        await Promise.all([this.#post(bytes.subarray(at, at + maxPostBytes)), pause]);
      }
      done();
    } catch (error) {
      done((await this.#endsSoon()) ? null : asError(error));
    }
  }

  /** A server that has given its answer knows the session no more: a post that it refuses then is no fault. */
  async #endsSoon(): Promise<boolean> {
    const soon = AbortSignal.any([AbortSignal.timeout(LAST_ANSWER_MS), this.#stop.signal]);
    if (!this.#down.readableEnded) await once(this.#down, "end", { signal: soon }).catch(() => {});
    return this.#down.readableEnded;
  }
}
