import { randomUUID } from "node:crypto";
import type { ClientHttp2Stream, IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { ProtocolError } from "#core/errors.ts";
import type { DialContext } from "#core/outbound.ts";
import { CodecStream } from "#net/codec-stream.ts";
import { PlainCodec } from "#transport/http2/plain-codec.ts";
import type { Http2Pool } from "#transport/http2/pool.ts";
import { basePath, padding } from "./padding.ts";

export interface XhttpClientOptions {
  readonly scheme: "http" | "https";
  readonly authority: string;
  readonly path: string;
  readonly query: string;
  readonly mode: "packet-up" | "stream-one";
  readonly headers: Readonly<Record<string, string>>;
  /** Streamed requests are not labelled as gRPC. */
  readonly noGrpcHeader: boolean;
  readonly maxPostBytes: number;
  readonly minPostsIntervalMs: number;
}

/** Nobody listens after the dial: posts go on as long as the stream does. */
const POST_TIMEOUT_MS = 60_000;

export async function openXhttpStream(
  pool: Http2Pool,
  options: XhttpClientOptions,
  { signal, metadata }: DialContext,
): Promise<Duplex> {
  const request = (method: string, suffix: string, own: OutgoingHttpHeaders, until: AbortSignal) =>
    pool.request({ ...headersOf(options, method, suffix), ...own }, until, metadata);
  if (options.mode === "stream-one") {
    const label = options.noGrpcHeader ? {} : { "content-type": "application/grpc" };
    return new CodecStream(checked(await request("POST", "", label, signal)), new PlainCodec());
  }
  const session = randomUUID();
  const down = checked(await request("GET", session, {}, signal));
  down.end();
  let sequence = 0;
  const post = async (body: Buffer): Promise<void> => {
    const until = AbortSignal.timeout(POST_TIMEOUT_MS);
    await answered(await request("POST", `${session}/${sequence++}`, {}, until), body);
  };
  return new PacketUpStream(down, post, options);
}

function headersOf(options: XhttpClientOptions, method: string, suffix: string): OutgoingHttpHeaders {
  const { scheme, authority, query } = options;
  const path = `${basePath(options.path)}${suffix}`;
  return {
    ...options.headers,
    ":method": method,
    ":scheme": scheme,
    ":authority": authority,
    ":path": query === "" ? path : `${path}?${query}`,
    referer: `${scheme}://${authority}${path}?x_padding=${padding()}`,
  };
}

/** Anything but 200 is the server's refusal. */
function checked(stream: ClientHttp2Stream): ClientHttp2Stream {
  stream.on("error", () => stream.destroy());
  stream.on("response", (headers: IncomingHttpHeaders) => {
    const status = headers[":status"] as unknown as number;
    if (status !== 200) stream.destroy(new ProtocolError(`the server answered with status ${status}`));
  });
  return stream;
}

function answered(stream: ClientHttp2Stream, body: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    checked(stream).on("error", reject);
    stream.on("close", () => reject(new Error("the server gave no answer to a post")));
    stream.on("end", resolve);
    stream.resume();
    stream.end(body);
  });
}

/** Down: the answer to one GET. Up: numbered posts, one at a time; what is written meanwhile shares the next one. */
class PacketUpStream extends Duplex {
  readonly #down: ClientHttp2Stream;
  readonly #post: (body: Buffer) => Promise<void>;
  readonly #options: XhttpClientOptions;
  readonly #stop = new AbortController();

  constructor(down: ClientHttp2Stream, post: (body: Buffer) => Promise<void>, options: XhttpClientOptions) {
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
      if (!this.readableEnded && this.readableLength === 0) this.destroy();
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
    this.#stop.abort();
    this.#down.destroy();
    done(error);
  }

  async #send(bytes: Buffer, done: (error?: Error | null) => void): Promise<void> {
    const { maxPostBytes, minPostsIntervalMs } = this.#options;
    try {
      for (let at = 0; at < bytes.length; at += maxPostBytes) {
        const pause = delay(minPostsIntervalMs, undefined, { signal: this.#stop.signal });
        await Promise.all([this.#post(bytes.subarray(at, at + maxPostBytes)), pause]);
      }
      done();
    } catch (error) {
      done(error as Error);
    }
  }
}
