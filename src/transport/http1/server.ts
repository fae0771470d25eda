import type { Duplex } from "node:stream";
import { createServer } from "#lib/node-http.ts";
import { BEARER_BYTES, type Bearer, type OnTunnel, REQUEST_BYTES } from "#transport/bearer.ts";
import { pathOf } from "#transport/http-head.ts";
import { http1Exchange } from "#transport/xhttp/exchange.ts";
import type { RequestBearer, XhttpServer } from "#transport/xhttp/server.ts";

/** A connection without a whole request is closed after so long. */
const IDLE_MS = 30_000;
/** Requests to a tunnel are short; a longer head is answered with 431. */
const MAX_HEAD_BYTES = 16_384;
const MAX_FIELDS = 100;

/** Serves the HTTP/1.1 connections of one listener; every tunnel in them is given to `on`. */
export type Http1Server = (wire: Duplex, on: OnTunnel, bearer: Bearer) => void;

export function http1Server(xhttp: XhttpServer): Http1Server {
  const served = new WeakMap<
    Duplex,
    { readonly on: OnTunnel; readonly by: RequestBearer; readonly unknown: Bearer["unknown"] }
  >();
  const clocks = new WeakMap<Duplex, { begin(): void; end(): void }>();
  const server = createServer({ maxHeaderSize: MAX_HEAD_BYTES, requestTimeout: 0, headersTimeout: 0 });
  server.maxHeadersCount = MAX_FIELDS;
  server.on("clientError", (_error, wire: Duplex) => wire.destroy());
  server.on("request", (request, answer) => {
    const wire: Duplex = request.socket;
    const one = served.get(wire);
    const clock = clocks.get(wire);
    if (one === undefined || clock === undefined) return void answer.destroy();
    clock.begin();
    one.unknown?.grow(REQUEST_BYTES);
    answer.once("close", () => {
      clock.end();
      one.unknown?.grow(-REQUEST_BYTES);
    });
    const path = pathOf(request.url ?? "");
    const exchange = http1Exchange(request, answer);
    if (xhttp.owns(path)) xhttp.serve(exchange, path, one.on, one.by);
    else exchange.finish(404);
  });
  return (wire, on, { source, unknown }) => {
    unknown?.grow(BEARER_BYTES);
    served.set(wire, { on, unknown, by: { source, settle: () => unknown?.leave() } });
    clocks.set(wire, idleClock(wire));
    wire.on("error", () => wire.destroy());
    server.emit("connection", wire);
  };
}

function idleClock(wire: Duplex) {
  let busy = 0;
  const start = () => setTimeout(() => wire.destroy(), IDLE_MS).unref();
  let timer = start();
  wire.once("close", () => clearTimeout(timer));
  return {
    begin() {
      if (busy++ === 0) clearTimeout(timer);
    },
    end() {
      if (--busy === 0 && !wire.destroyed) timer = start();
    },
  };
}
