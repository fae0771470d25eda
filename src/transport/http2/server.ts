import type { Http2Tunnels } from "#core/wire-details.ts";
import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { performServerHandshake } from "node:http2";
import type { Duplex } from "node:stream";
import { SESSION_BOUNDS } from "#lib/http2-server.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { onEnd } from "#net/stream/late-end.ts";
import { GunCodec } from "#transport/grpc/codec.ts";
import { BEARER_BYTES, type Bearer, NO_BEARER, type OnTunnel, REQUEST_BYTES } from "#transport/bearer.ts";
import { pathOf } from "#transport/http-head.ts";
import { http2Exchange } from "#transport/xhttp/exchange.ts";
import type { XhttpServer } from "#transport/xhttp/server.ts";
import { isGone } from "./gone.ts";
import { PlainCodec } from "./plain-codec.ts";
import { answerTunnel, trailersOf } from "./tunnels.ts";
import { CONNECTION_WINDOW_BYTES, MAX_HEAD_BYTES, MAX_STREAMS, STREAM_WINDOW_BYTES } from "./windows.ts";

export interface Http2ServerOptions extends Http2Tunnels {
  /** The XHTTP transport, shared by all connections of a listener; null: not offered. */
  readonly xhttp: XhttpServer | null;
}

/** A connection without streams is closed after so long. */
const IDLE_MS = 300_000;

/** Serves one HTTP/2 connection and owns it; every tunnel in it is given to `on`. Never throws. */
export function serveHttp2(
  wire: Duplex,
  options: Http2ServerOptions,
  on: OnTunnel,
  { source, unknown }: Bearer = NO_BEARER,
): void {
  const session: ServerHttp2Session = performServerHandshake(wire, {
    ...SESSION_BOUNDS,
    settings: {
      maxConcurrentStreams: MAX_STREAMS,
      maxHeaderListSize: MAX_HEAD_BYTES,
    },
  });
  unknown?.grow(BEARER_BYTES);
  let isKnown = false;
  // Until then streams have the window of the protocol's own beginning, each by itself: the runtime grants the connection's
  // window anew whatever becomes of the bytes.
  const settle = (): void => {
    if (isKnown) return;
    isKnown = true;
    unknown?.leave();
    if (session.destroyed) return;
    session.settings({ initialWindowSize: STREAM_WINDOW_BYTES });
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
  };
  session.on("error", () => session.destroy());
  // Sockets here may be half open; an HTTP/2 client that ends its side is gone, and the session would not notice.
  onEnd(wire, () => session.destroy());
  wire.on("close", () => session.destroy()); // a stream that is no socket may go without an end
  session.setTimeout(IDLE_MS, () => session.close());
  session.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on("error", () => stream.destroy()); // a reset tunnel ends; its user has its own listener
    if (isGone(stream)) return;
    unknown?.grow(REQUEST_BYTES);
    stream.once("close", () => unknown?.grow(-REQUEST_BYTES));
    const path = pathOf(headers[":path"] ?? "");
    if (options.xhttp?.owns(path) === true)
      return options.xhttp.serve(http2Exchange(stream, headers), path, on, { source, settle });
    const tunnel = answer(stream, headers, options);
    if (tunnel !== null) on(tunnel, settle);
  });
}

function answer(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  options: Http2ServerOptions,
): Duplex | null {
  const request = {
    method: headers[":method"] ?? "",
    path: headers[":path"] ?? "",
    authority: headers[":authority"] ?? headers.host ?? "",
    contentType: headers["content-type"] ?? "",
    referer: headers.referer ?? "",
  };
  const { carrier, fields } = answerTunnel(request, options);
  const answered = Object.fromEntries(fields);
  if (carrier === null) {
    stream.respond(answered, { endStream: true });
    return null;
  }
  const trailers = trailersOf(carrier);
  stream.respond(answered, { waitForTrailers: trailers !== null });
  if (trailers === null) return new CodecStream(stream, new PlainCodec());
  stream.on("wantTrailers", () => {
    if (!isGone(stream)) stream.sendTrailers(Object.fromEntries(trailers));
  });
  return new CodecStream(stream, new GunCodec());
}
