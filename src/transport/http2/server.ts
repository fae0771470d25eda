import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { performServerHandshake } from "node:http2";
import type { Duplex } from "node:stream";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { onEnd } from "#net/stream/late-end.ts";
import { GunCodec } from "#transport/grpc/codec.ts";
import { gunPaths } from "#transport/grpc/path.ts";
import { hostMatches, pathOf } from "#transport/http-head.ts";
import { http2Exchange } from "#transport/xhttp/exchange.ts";
import type { XhttpServer } from "#transport/xhttp/server.ts";
import { isGone } from "./gone.ts";
import { PlainCodec } from "./plain-codec.ts";
import { CONNECTION_WINDOW_BYTES, MAX_STREAMS, STREAM_WINDOW_BYTES } from "./windows.ts";

export interface Http2ServerOptions {
  /** Service name of the gRPC transport; null: not offered. */
  readonly grpcServiceName: string | null;
  /** Path and hosts of the h2 transport (any host where the list is empty); null: not offered. */
  readonly h2: { readonly path: string; readonly hosts: readonly string[] } | null;
  /** The XHTTP transport, shared by all connections of a listener; null: not offered. */
  readonly xhttp: XhttpServer | null;
}

/** A connection without streams is closed after so long. */
const IDLE_MS = 300_000;

/** Serves one HTTP/2 connection and owns it; every tunnel in it is given to `on`. Never throws. */
export function serveHttp2(wire: Duplex, options: Http2ServerOptions, on: (stream: Duplex) => void): void {
  const session: ServerHttp2Session = performServerHandshake(wire, {
    settings: { initialWindowSize: STREAM_WINDOW_BYTES, maxConcurrentStreams: MAX_STREAMS },
  });
  session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
  session.on("error", () => session.destroy());
  // Sockets here may be half open; an HTTP/2 client that ends its side is gone, and the session would not notice.
  onEnd(wire, () => session.destroy());
  wire.on("close", () => session.destroy()); // a stream that is no socket may go without an end
  session.setTimeout(IDLE_MS, () => session.close());
  session.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on("error", () => stream.destroy()); // a reset tunnel ends; its user has its own listener
    if (isGone(stream)) return;
    const path = pathOf(headers[":path"] ?? "");
    if (options.xhttp?.owns(path) === true)
      return options.xhttp.serve(http2Exchange(stream, headers), path, on);
    const tunnel = answer(stream, headers, options);
    if (tunnel !== null) on(tunnel);
  });
}

function answer(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  { grpcServiceName, h2 }: Http2ServerOptions,
): Duplex | null {
  const path = pathOf(headers[":path"] ?? "");
  if (headers["content-type"]?.startsWith("application/grpc") === true && grpcServiceName !== null) {
    const { single, multi } = gunPaths(grpcServiceName);
    if (path === single || path === multi) return answerGrpc(stream);
    stream.respond(
      { ":status": 200, "content-type": "application/grpc", "grpc-status": "12" },
      { endStream: true },
    );
    return null;
  }
  if (h2 !== null && path === pathOf(h2.path) && hostMatches(headers[":authority"] ?? "", h2.hosts)) {
    stream.respond({ ":status": 200, "cache-control": "no-store" });
    return new CodecStream(stream, new PlainCodec());
  }
  stream.respond({ ":status": grpcServiceName !== null && h2 === null ? 415 : 404 }, { endStream: true });
  return null;
}

function answerGrpc(stream: ServerHttp2Stream): Duplex {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => {
    if (!isGone(stream)) stream.sendTrailers({ "grpc-status": "0" });
  });
  return new CodecStream(stream, new GunCodec());
}
