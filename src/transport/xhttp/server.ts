import { randomInt } from "node:crypto";
import type { Duplex } from "node:stream";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { PlainCodec } from "#transport/http2/plain-codec.ts";
import type { Exchange } from "./exchange.ts";
import { basePath, MAX_POST_BYTES, padding } from "./padding.ts";
import { XhttpSession } from "./session.ts";
import { BODY_FIELDS, isBelow, judge, PADDING_FIELD, type StreamOne } from "./stream-one.ts";

/** Sessions at one time; further ones are refused with 503. */
const MAX_SESSIONS = 1024;
/**
 * Bodies that are coming or wait for an earlier one, over all sessions; clients need no credentials to send them. Beyond
 * this a post is refused with 503.
 */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/**
 * How often filler is sent in the response to a streamed upload, so that proxies in between do not close it as idle.
 */
const MIN_FILLER_MS = 20_000;
const MAX_FILLER_MS = 80_000;

const SESSION_ID = /^[0-9A-Za-z-]{1,64}$/;

/** The server's side of packet-up, stream-up and stream-one: sessions outlive single requests and connections. */
export class XhttpServer implements Disposable {
  readonly #base: string;
  readonly #place: StreamOne;
  /** The other modes are refused. */
  readonly #onlyStreamOne: boolean;
  readonly #sessions = new Map<string, XhttpSession>();
  #waitingBytes = 0;

  constructor(place: StreamOne, onlyStreamOne = false) {
    this.#base = basePath(place.path);
    this.#place = place;
    this.#onlyStreamOne = onlyStreamOne;
  }

  owns(path: string): boolean {
    return isBelow(path, this.#base);
  }

  /** Answers one request for a path (without query) that it owns. A tunnel that begins with it is given to `on`. */
  serve(exchange: Exchange, path: string, on: (tunnel: Duplex) => void): void {
    const { method, host: authority, referer } = exchange;
    const verdict = judge({ method, path, authority, referer }, this.#place);
    if (verdict === "stream") {
      begin(exchange);
      return on(new CodecStream(exchange.body, new PlainCodec()));
    }
    if (verdict !== "session") return exchange.finish(verdict);
    if (this.#onlyStreamOne) return exchange.finish(400);
    const [session = "", sequence, ...more] = path.slice(this.#base.length).split("/");
    if (!SESSION_ID.test(session) || more.length > 0) return exchange.finish(404);
    if (method === "GET" && sequence === undefined) return this.#attach(exchange, session, on);
    if (method !== "POST") return exchange.finish(405);
    if (sequence === undefined) return this.#stream(exchange, session);
    if (!/^\d{1,15}$/.test(sequence)) return exchange.finish(400);
    this.#receive(exchange, session, Number(sequence));
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
    session.on("close", () => this.#sessions.delete(id));
    return session;
  }

  #attach(exchange: Exchange, id: string, on: (tunnel: Duplex) => void): void {
    const session = this.#session(id);
    if (session === null) return exchange.finish(503);
    if (session.attached) return exchange.finish(409);
    begin(exchange);
    session.attach(exchange);
    on(session);
  }

  #stream(exchange: Exchange, id: string): void {
    const session = this.#session(id);
    if (session === null) return exchange.finish(503);
    if (session.uploads) return exchange.finish(409);
    begin(exchange);
    session.stream(exchange);
    fill(exchange.body);
  }

  #receive(exchange: Exchange, id: string, sequence: number): void {
    const session = this.#session(id);
    if (session === null) return exchange.finish(503);
    const { request } = exchange;
    const parts: Buffer[] = [];
    let size = 0;
    let isRefused = false;
    const forget = (): void => {
      this.#waitingBytes -= size;
      size = parts.length = 0;
    };
    const refuse = (status: number): void => {
      isRefused = true;
      forget();
      exchange.finish(status);
    };
    request.on("data", (bytes: Buffer) => {
      if (isRefused) return;
      if (size + bytes.length > MAX_POST_BYTES) return refuse(413);
      if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) return refuse(503);
      size += bytes.length;
      this.#waitingBytes += bytes.length;
      parts.push(bytes);
    });
    request.once("close", forget);
    request.on("end", () => {
      if (isRefused) return;
      const body = Buffer.concat(parts);
      forget(); // the session counts it
      session.receive(sequence, body, (status) => exchange.finish(status, { [PADDING_FIELD]: padding() }));
    });
  }
}

function begin(exchange: Exchange): void {
  exchange.begin({ ...Object.fromEntries(BODY_FIELDS), [PADDING_FIELD]: padding() });
}

function fill(body: Duplex): void {
  let timer: NodeJS.Timeout | undefined;
  const next = () => {
    timer = setTimeout(
      () => {
        if (body.writable && !body.writableNeedDrain) body.write(padding());
        next();
      },
      randomInt(MIN_FILLER_MS, MAX_FILLER_MS),
    ).unref();
  };
  next();
  body.once("close", () => clearTimeout(timer));
}
