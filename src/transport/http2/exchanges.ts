import type { ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import type { DialContext } from "#core/outbound.ts";
import type { HttpClient, HttpRequest } from "#transport/http-client.ts";
import type { Http2Pool } from "./pool.ts";

/** Requests as streams of shared HTTP/2 connections. The pool belongs to the caller. */
export class Http2Exchanges implements HttpClient {
  readonly #pool: Http2Pool;

  constructor(pool: Http2Pool) {
    this.#pool = pool;
  }

  async open(request: HttpRequest, { signal, metadata }: DialContext): Promise<Duplex> {
    const { method, scheme, authority, path, headers, body } = request;
    const pseudo = { ":method": method, ":scheme": scheme, ":authority": authority, ":path": path };
    const stream = checkStatus(await this.#pool.request({ ...headers, ...pseudo }, signal, metadata));
    if (body === null) stream.end();
    else if (body !== "stream") stream.end(body);
    return stream;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#pool[Symbol.asyncDispose]();
  }
}

/** Anything but 200, or a gRPC status other than 0, is the server's refusal. */
export function checkStatus(stream: ClientHttp2Stream): ClientHttp2Stream {
  stream.on("error", () => stream.destroy());
  stream.on("response", (headers: IncomingHttpHeaders) => {
    const status = Number(headers[":status"]);
    const grpcStatus = headers["grpc-status"];
    if (status !== 200) stream.destroy(new ProtocolError(`the server answered with status ${status}`));
    else if (grpcStatus !== undefined && grpcStatus !== "0")
      stream.destroy(
        new ProtocolError(`the server answered with gRPC status ${String(grpcStatus).slice(0, 8)}`),
      );
  });
  return stream;
}
