/** One request and its answer as the XHTTP server sees them, whatever version of HTTP carries them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { type Duplex, PassThrough, type Readable } from "node:stream";
import type { Http3Answer, Http3Request } from "#transport/http3/server.ts";
import { MessagePair } from "#transport/message-pair.ts";

type Fields = Readonly<Record<string, string>>;

export interface Exchange {
  readonly method: string;
  /** `:authority` or `Host` as the client sent it, with its port. */
  readonly host: string;
  readonly referer: string;
  /** The request's body to read, the answer's to write. Has an 'error' listener; destroying it breaks the exchange. */
  readonly body: Duplex;
  /** The request's body, in place of `body` and whatever becomes of the answer. Has an 'error' listener. */
  readonly request: Readable;
  /** Begins an answer of status 200 with a body. */
  begin(fields: Fields): void;
  /** An answer without a body; what is still to come of the request is thrown away. */
  finish(status: number, fields?: Fields): void;
}

export function http2Exchange(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Exchange {
  return {
    method: headers[":method"] ?? "",
    host: headers[":authority"] ?? headers.host ?? "",
    referer: headers.referer ?? "",
    body: stream,
    request: stream,
    begin: (fields) => stream.respond({ ":status": 200, ...fields }),
    finish(status, fields = {}) {
      if (stream.destroyed || stream.headersSent) return;
      stream.respond({ ":status": status, ...fields }, { endStream: true });
      // A client that goes on with its body is told to stop, behind the answer: its stream would be open as long as it likes.
      setImmediate(() => stream.close(constants.NGHTTP2_NO_ERROR));
      stream.resume();
    },
  };
}

export function http1Exchange(request: IncomingMessage, answer: ServerResponse): Exchange {
  let body: MessagePair | null = null;
  request.on("error", () => {});
  return {
    request,
    method: request.method ?? "",
    host: request.headers.host ?? "",
    referer: request.headers.referer ?? "",
    get body() {
      body ??= new MessagePair(answer, request).on("error", () => body?.destroy());
      return body;
    },
    begin(fields) {
      answer.writeHead(200, fields);
      answer.flushHeaders();
    },
    finish(status, fields = {}) {
      if (answer.destroyed || answer.headersSent) return;
      answer.writeHead(status, { "content-length": "0", ...fields });
      answer.end();
      request.resume();
    },
  };
}

/** The answer settles when the server has decided what it is. */
export function http3Exchange({ method, authority, fields, body: request }: Http3Request): {
  readonly exchange: Exchange;
  readonly answer: Promise<Http3Answer>;
} {
  const { promise, resolve } = Promise.withResolvers<Http3Answer>();
  let body: MessagePair | null = null;
  const answered = new PassThrough();
  const exchange: Exchange = {
    method,
    host: authority,
    referer: fields.find(([name]) => name === "referer")?.[1] ?? "",
    request,
    get body() {
      body ??= new MessagePair(answered, request).on("error", () => body?.destroy());
      return body;
    },
    begin: (own) => resolve({ status: 200, fields: Object.entries(own), body: answered, keepsRequest: true }),
    finish: (status, own = {}) => resolve({ status, fields: Object.entries(own), body: null }),
  };
  return { exchange, answer: promise };
}
