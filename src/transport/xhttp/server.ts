import { randomInt } from "node:crypto";
import type { Duplex } from "node:stream";
import type { UnauthenticatedClients } from "#core/inbound.ts";
import type { Endpoint } from "#core/session.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { PlainCodec } from "#transport/http2/plain-codec.ts";
import { NO_BEARER, type OnTunnel } from "#transport/bearer.ts";
import type { Exchange } from "./exchange.ts";
import { basePath, padding } from "./padding.ts";
import { gather } from "./post.ts";
import { KnownBytes, SessionBytes } from "./session-bytes.ts";
import { XhttpSession } from "./session.ts";
import type { HttpPlace } from "#core/wire-details.ts";
import { BODY_FIELDS, isBelow, judge, PADDING_FIELD } from "./stream-one.ts";

/**
 * How often filler is sent in the response to a streamed upload, so that proxies in between do not close it as idle.
 */
const MIN_FILLER_MS = 20_000;
const MAX_FILLER_MS = 80_000;

const SESSION_ID = /^[0-9A-Za-z-]{1,64}$/;

/** The connection that a request has come by. */
export interface RequestBearer {
  readonly source: Endpoint;
  /** Its client has shown who it is. */
  readonly settle: () => void;
}

export interface XhttpServerOptions {
  /** The other modes are refused. */
  readonly onlyStreamOne?: boolean;
  /** Sessions whose clients have not shown who they are. Null: there is room for as many as come. */
  readonly unauthenticated?: UnauthenticatedClients | null;
}

const NO_REQUEST_BEARER: RequestBearer = { source: NO_BEARER.source, settle() {} };

/** The server's side of packet-up, stream-up and stream-one: sessions outlive single requests and connections. */
export class XhttpServer implements Disposable {
  readonly #base: string;
  readonly #place: HttpPlace;
  readonly #onlyStreamOne: boolean;
  readonly #unauthenticated: UnauthenticatedClients | null;
  readonly #sessions = new Map<string, XhttpSession>();
  readonly #known = new KnownBytes();

  constructor(place: HttpPlace, { onlyStreamOne = false, unauthenticated = null }: XhttpServerOptions = {}) {
    this.#base = basePath(place.path);
    this.#place = place;
    this.#onlyStreamOne = onlyStreamOne;
    this.#unauthenticated = unauthenticated;
  }

  owns(path: string): boolean {
    return isBelow(path, this.#base);
  }

  /** Answers one request for a path (without query) that it owns. A tunnel that begins with it is given to `on`. */
  serve(exchange: Exchange, path: string, on: OnTunnel, by = NO_REQUEST_BEARER): void {
    const { method, host: authority, referer } = exchange;
    const verdict = judge({ method, path, authority, referer }, this.#place);
    if (verdict === "stream") {
      begin(exchange);
      return on(new CodecStream(exchange.body, new PlainCodec()), by.settle);
    }
    if (verdict !== "session") return exchange.finish(verdict);
    if (this.#onlyStreamOne) return exchange.finish(400);
    const [session = "", sequence, ...more] = path.slice(this.#base.length).split("/");
    if (!SESSION_ID.test(session) || more.length > 0) return exchange.finish(404);
    if (method === "GET" && sequence === undefined)
      return this.#attach(exchange, this.#session(session, by), on);
    if (method !== "POST") return exchange.finish(405);
    if (sequence === undefined) return this.#stream(exchange, this.#session(session, by));
    if (!/^\d{1,15}$/.test(sequence)) return exchange.finish(400);
    this.#receive(exchange, this.#session(session, by), Number(sequence));
  }

  [Symbol.dispose](): void {
    for (const session of this.#sessions.values()) if (!session.attached) session.destroy();
  }

  #session(id: string, { source, settle }: RequestBearer): XhttpSession {
    let session = this.#sessions.get(id);
    if (session === undefined) {
      const made = (session = new XhttpSession((one) => {
        const unknown = this.#unauthenticated?.enter({ source, follow: (on) => on(one) }, false) ?? null;
        return new SessionBytes(this.#known, unknown);
      }));
      this.#sessions.set(id, made);
      made.on("close", () => this.#sessions.delete(id));
    }
    session.comesBy(settle);
    return session;
  }

  #attach(exchange: Exchange, session: XhttpSession, on: OnTunnel): void {
    if (session.attached) return exchange.finish(409);
    begin(exchange);
    session.attach(exchange);
    on(session, () => session.settle());
  }

  #stream(exchange: Exchange, session: XhttpSession): void {
    if (session.uploads) return exchange.finish(409);
    begin(exchange);
    session.stream(exchange);
    fill(exchange.body);
  }

  #receive(exchange: Exchange, session: XhttpSession, sequence: number): void {
    const answer = (status: number): void =>
      exchange.finish(status, status === 200 ? { [PADDING_FIELD]: padding() } : {});
    gather(exchange.request, session, {
      onWhole: (body) => session.receive(sequence, body, answer),
      refuse: answer,
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
