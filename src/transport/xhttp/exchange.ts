/** One request and its answer as the XHTTP server sees them, whatever version of HTTP carries them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Duplex, Readable } from "node:stream";
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
  readonly answered: boolean;
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
    get answered() {
      return stream.headersSent || stream.destroyed;
    },
    begin: (fields) => stream.respond({ ":status": 200, ...fields }),
    finish(status, fields = {}) {
      if (stream.destroyed || stream.headersSent) return;
      stream.respond({ ":status": status, ...fields }, { endStream: true });
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
    get answered() {
      return answer.headersSent || answer.destroyed;
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
