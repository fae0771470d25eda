/** The accepting side of HTTP/3 (RFC 9114) on one QUIC connection: requests in, answers out; no pushes, no dynamic table. */
import type { Readable } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import type { ServedConnection, ServedStream } from "#transport/quic/server/served.ts";
import { H3_MESSAGE_ERROR, H3_NO_ERROR } from "./codes.ts";
import { DataFrames } from "./data-frames.ts";
import { PeerStreams } from "./peer-streams.ts";
import type { Field } from "./qpack.ts";
import { encodeHeaders, openControlStream } from "./request.ts";
import { RequestReader } from "./request-reader.ts";

export interface Http3Request {
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  /** With its query. */
  readonly path: string;
  /** Without those above; names in lower case. */
  readonly fields: readonly Field[];
  /** What is not read is thrown away with the answer. */
  readonly body: Readable;
}

export interface Http3Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly fields: readonly Field[];
  /** A stream is destroyed where it cannot be sent. Null: there is none. */
  readonly body: Buffer | Readable | null;
  /** The request is read to its end, however long the answer is over; absent: what was not read by then is refused. */
  readonly keepsRequest?: boolean;
}

export interface Http3ServerOptions {
  /** Never rejects. */
  readonly answer: (request: Http3Request) => Promise<Http3Answer>;
  /** By the type of its first frame: takes a stream over, with all its bytes unread; null: it is a request. */
  readonly takeStream?: (type: number) => ((stream: ServedStream) => void) | null;
}

/** Requests of one connection whose fields are still coming. */
const MOST_READING = 32;

export class Http3Server {
  readonly #connection: ServedConnection;
  readonly #options: Http3ServerOptions;
  readonly #peerStreams: PeerStreams;
  #reading = 0;

  constructor(connection: ServedConnection, options: Http3ServerOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#peerStreams = new PeerStreams((code) => connection.close(code, ""));
    openControlStream(connection);
  }

  /** A stream that the client has opened. */
  take(stream: ServedStream): void {
    if (stream.send === null) return this.#peerStreams.take(stream);
    stream.on("error", () => {});
    let isReading = false;
    const isRead = (): void => {
      if (isReading) this.#reading--;
      isReading = false;
    };
    stream.once("close", isRead);
    const reader = new RequestReader(stream, {
      takeStream: (type) => {
        const take = this.#options.takeStream?.(type) ?? null;
        return take === null ? null : () => take(stream);
      },
      onSection: () => {
        if (this.#reading >= MOST_READING) return false;
        this.#reading++;
        return (isReading = true);
      },
      onHeaders: (fields, body) => {
        isRead();
        const request = requestOf(fields, body);
        if (request !== null) return void this.#serve(stream, reader, request);
        reader.detach();
        abort(stream, H3_MESSAGE_ERROR);
      },
      onFault: (code, ofConnection) => {
        if (ofConnection) this.#connection.close(code, "");
        else abort(stream, code);
      },
    });
  }

  async #serve(stream: ServedStream, reader: RequestReader, request: Http3Request): Promise<void> {
    const { status, fields, body, keepsRequest = false } = await this.#options.answer(request);
    const isBodyless = request.method === "HEAD" || body === null;
    if (!stream.destroyed) stream.write(encodeHeaders([[":status", String(status)], ...fields]));
    try {
      if (stream.destroyed || isBodyless || Buffer.isBuffer(body)) {
        if (body !== null && !Buffer.isBuffer(body)) body.destroy();
        if (stream.destroyed) return;
        if (!isBodyless && Buffer.isBuffer(body)) stream.write(DataFrames.encode(body));
        stream.end();
      } else await pipeline(body, new DataFrames(), stream, { end: true });
      if (keepsRequest && !stream.readableEnded) await finished(stream);
      else if (!stream.readableEnded) await finished(stream, { readable: false });
      reader.detach();
      stream.abortCode = H3_NO_ERROR; // for the rest of a body that was not read
      stream.destroy();
    } catch {
      stream.destroy(); // the client has gone, or what was to be sent has ended early
    }
  }
}

/** The reset carries the code. */
function abort(stream: ServedStream, code: number): void {
  stream.abortCode = code;
  stream.destroy(new Error("the request is refused"));
}

/** Null: a request must not be like that (RFC 9114 §4.3.1). */
function requestOf(fields: readonly Field[], body: Readable): Http3Request | null {
  const pseudo = new Map<string, string>();
  const others: Field[] = [];
  for (const [name, value] of fields) {
    if (name !== name.toLowerCase()) return null;
    if (!name.startsWith(":")) others.push([name, value]);
    else if (others.length > 0 || pseudo.has(name)) return null;
    else pseudo.set(name, value);
  }
  const [method, scheme, path] = [pseudo.get(":method"), pseudo.get(":scheme"), pseudo.get(":path")];
  const authority = pseudo.get(":authority") ?? others.find(([name]) => name === "host")?.[1];
  if (method === undefined || scheme === undefined || path === undefined || authority === undefined)
    return null;
  return path === "" ? null : { method, scheme, authority, path, fields: others, body };
}
