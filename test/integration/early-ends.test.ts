/** Servers that end a client's upload together with their answer, as those written in Go do: the answer is read whole. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { constants, createServer as createHttp2, type ServerHttp2Stream } from "node:http2";
import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Http1Pool } from "#transport/http1/pool.ts";
import { Http2Exchanges } from "#transport/http2/exchanges.ts";
import { Http2Pool } from "#transport/http2/pool.ts";
import type { HttpClient } from "#transport/http-client.ts";
import { openXhttpStream } from "#transport/xhttp/client.ts";
import type { XhttpClientOptions } from "#transport/xhttp/requests.ts";

const ANSWER = Buffer.alloc(40_000, "answer ");
const CONNECTIONS = 1000;
const AT_ONCE = 25;

async function listening(server: Server) {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { port, [Symbol.dispose]: close };
}

/** Of one session: what ends its two exchanges, once the upload has begun and the answer is asked for. */
class Sessions {
  readonly #known = new Map<
    string,
    { isBegun: boolean; answer: (() => void) | null; endUpload: () => void }
  >();

  #of(path: string) {
    const id = path.split("/")[2]?.split("?")[0] ?? "";
    const known = this.#known.get(id) ?? { isBegun: false, answer: null, endUpload: () => {} };
    this.#known.set(id, known);
    return known;
  }

  asked(path: string, answer: () => void): void {
    const session = this.#of(path);
    session.answer = answer;
    this.#finish(session);
  }

  begun(path: string, endUpload: () => void): void {
    const session = this.#of(path);
    session.endUpload = endUpload;
    session.isBegun = true;
    this.#finish(session);
  }

  #finish({
    isBegun,
    answer,
    endUpload,
  }: {
    isBegun: boolean;
    answer: (() => void) | null;
    endUpload: () => void;
  }) {
    if (!isBegun || answer === null) return;
    answer();
    endUpload();
  }
}

function serveHttp2(): Server {
  const sessions = new Sessions();
  const server = createHttp2();
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    const { ":method": method = "", ":path": path = "" } = headers;
    stream.on("error", () => {});
    const number = path.split("/")[3];
    stream.respond({ ":status": number === undefined || number === "0" ? 200 : 404 });
    if (number !== undefined) {
      stream.resume();
      stream.end();
      return sessions.begun(path, () => {});
    }
    if (path.endsWith("/x/"))
      return void stream.once("data", () => {
        stream.end(ANSWER, () => stream.close(constants.NGHTTP2_NO_ERROR));
      });
    if (method === "GET") return sessions.asked(path, () => stream.end(ANSWER));
    // A handler that returns with the body unread: END_STREAM, then RST_STREAM with NO_ERROR.
    stream.once("data", () =>
      sessions.begun(path, () => {
        stream.end();
        stream.close(constants.NGHTTP2_NO_ERROR);
      }),
    );
  });
  return server as unknown as Server;
}

function serveHttp1(): Server {
  const sessions = new Sessions();
  return createHttp1((request: IncomingMessage, answer: ServerResponse) => {
    request.on("error", () => {});
    answer.writeHead(200);
    answer.flushHeaders();
    const path = request.url ?? "";
    if (request.method === "GET") return sessions.asked(path, () => answer.end(ANSWER));
    request.once("data", () =>
      sessions.begun(path, () => {
        answer.end();
        request.socket.end();
      }),
    );
  });
}

async function readWhole(stream: Duplex, restMs: number): Promise<number> {
  let bytes = 0;
  stream.write("request");
  await delay(restMs); // so that the ends are there before anybody reads
  stream.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes < 20_000) stream.write("more of the request");
  });
  stream.on("error", () => {});
  await Promise.race([once(stream, "end"), once(stream, "close")]);
  stream.destroy();
  return bytes;
}

async function lost(http: HttpClient, mode: XhttpClientOptions["mode"]): Promise<number> {
  let left = CONNECTIONS;
  let failed = 0;
  const options = { scheme: "http", authority: "x.test", path: "/x", query: "", headers: {} } as const;
  const limits = { noGrpcHeader: false, maxPostBytes: 1000, minPostsIntervalMs: 0, mostPosts: 8 };
  const work = async (): Promise<void> => {
    while (left > 0) {
      const restMs = left-- % 4;
      const context = { signal: AbortSignal.timeout(20_000), metadata: null };
      try {
        const stream = await openXhttpStream(http, { ...options, ...limits, mode }, context);
        if ((await readWhole(stream, restMs)) !== ANSWER.length) failed++;
      } catch {
        failed++;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return failed;
}

const dialTo = (port: number) => async () => {
  const stream = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  await once(stream, "connect");
  return { stream, alpn: null, serverName: "", bypass: null };
};

for (const mode of ["stream-up", "stream-one", "packet-up"] as const)
  test(`XHTTP ${mode} over HTTP/2: 1,000 of 1,000 short connections whole`, async () => {
    using server = await listening(serveHttp2());
    const limits = { maxConnections: 4, minStreams: 0, maxStreams: 0, pingIntervalMs: 0 };
    const pool = new Http2Pool({ ...limits, dial: dialTo(server.port) });
    await using http = new Http2Exchanges(pool);
    assert.equal(await lost(http, mode), 0);
  });

test("XHTTP stream-up over HTTP/1.1: 1,000 of 1,000 short connections whole", async () => {
  using server = await listening(serveHttp1());
  await using http = new Http1Pool(dialTo(server.port));
  assert.equal(await lost(http, "stream-up"), 0);
});
