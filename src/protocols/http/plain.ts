/** Plain proxying: requests with a whole URL, parsed and answered by node:http, forwarded over sessions. */
import type { Duplex } from "node:stream";
import { createServer, type IncomingMessage, type Server, ServerResponse } from "#lib/node-http.ts";
import type { InboundEnv } from "#core/inbound.ts";
import { endWithReply, guardErrors } from "#net/listen/accept.ts";
import type { Client } from "#protocols/mixed/client.ts";
import { type Answer, answerFields, AUTHENTICATION_REQUIRED, BAD_REQUEST, encodeAnswer } from "./answers.ts";
import { parseConnectTarget, parsePlainTarget } from "./authority.ts";
import { identify } from "./credentials.ts";
import { countOf } from "./forward-fields.ts";
import { forward, forwardUpgrade, type Forwarded } from "./forward.ts";
import { Silence } from "./silence.ts";
import { tunnelSession } from "./tunnel.ts";
import { Upstream } from "./upstream.ts";

const MAX_HEAD_BYTES = 64 * 1024;
/** Requests of one connection that may wait for their turn; a client that sends more ahead is closed. */
const MAX_PIPELINED = 16;

interface ClientState {
  readonly client: Client;
  readonly upstream: Upstream;
  readonly silence: Silence;
  /** Settles when all requests so far are answered. Answers keep the order, and one request at a time is forwarded. */
  turn: Promise<void>;
  /** Of the request whose turn it is, or was. */
  response: ServerResponse | null;
}

export interface PlainDeadlines {
  /** For a request's head, from its first byte. */
  readonly headMs: number;
  /** Between two requests. */
  readonly idleMs: number;
  /** How often heads are looked at. */
  readonly checkMs: number;
}

const DEADLINES: PlainDeadlines = { headMs: 30_000, idleMs: 60_000, checkMs: 5_000 };

export class PlainProxy implements Disposable {
  readonly #env: InboundEnv;
  readonly #server: Server;
  readonly #silenceMs: number;
  readonly #states = new Map<Duplex, ClientState>();
  #disposed = false;

  constructor(env: InboundEnv, { headMs, idleMs, checkMs } = DEADLINES) {
    this.#env = env;
    this.#silenceMs = idleMs + headMs; // where the library has bounds of its own, they come first
    this.#server = createServer({
      maxHeaderSize: MAX_HEAD_BYTES,
      headersTimeout: headMs,
      requestTimeout: 0, // an upload may take as long as it takes
      keepAliveTimeout: idleMs,
      connectionsCheckingInterval: checkMs,
      insecureHTTPParser: false,
      // An upgrade with a body is forwarded as an ordinary request: the body must not be taken for the new protocol.
      shouldUpgradeCallback: (request) => !hasBody(request),
    });
    // A client that ends its side behind its last request still gets the answer.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    this.#server.maxHeadersCount = 0; // the size bounds them; a count would silently drop the others
    const on = (request: IncomingMessage, response: ServerResponse) => this.#onRequest(request, response);
    this.#server.on("request", on).on("checkContinue", on);
    this.#server.on("upgrade", (request, stream, head) => this.#onUpgrade(request, stream, head));
    this.#server.on("connect", (request, stream, head) => this.#onConnect(request, stream, head));
    this.#server.on("clientError", (error, stream) => this.#onMalformed(error, stream));
    // This server gets its connections from us and never listens; the event starts the check of its deadlines.
    this.#server.emit("listening");
  }

  /** Takes a client over whose request is no CONNECT; nothing of it has been read. */
  take(client: Client): void {
    const stream = client.connection.stream();
    const upstream = new Upstream(client, this.#env);
    const silence = new Silence(stream, this.#silenceMs);
    this.#states.set(stream, { client, upstream, silence, turn: Promise.resolve(), response: null });
    stream.on("close", () => {
      upstream.destroy();
      this.#states.delete(stream);
      this.#stopChecking();
    });
    this.#server.emit("connection", stream);
  }

  /** Closes clients between two requests; requests under way are answered, and their connections close behind them. */
  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#server.closeIdleConnections();
    this.#stopChecking();
  }

  #stopChecking(): void {
    if (this.#disposed && this.#states.size === 0) this.#server.close(() => {});
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const state = this.#states.get(request.socket);
    if (state === undefined) return;
    const { silence } = state;
    if (silence.waiting >= MAX_PIPELINED) {
      request.socket.destroy();
      return;
    }
    response.on("pipe", (incoming: IncomingMessage) => incoming.on("data", () => silence.broken()));
    inTurn(state, async () => {
      if (response.destroyed || request.socket.destroyed) return;
      state.response = response;
      if (this.#disposed) response.shouldKeepAlive = false;
      const understood = this.#understand(request, state);
      if ("status" in understood) answer(request, response, understood);
      else await forward(request, response, understood, (final) => answer(request, response, final));
    });
  }

  #onUpgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    guardErrors(stream);
    const state = this.#states.get(stream);
    if (state === undefined) return;
    stream.once("pipe", () => state.silence.leave()); // the two sides have become one connection
    inTurn(state, async () => {
      if (stream.destroyed) return;
      if (head.length > 0) stream.unshift(head);
      // For an answer other than 101: the connection has left the server and closes behind it.
      const response = new ServerResponse(request);
      response.shouldKeepAlive = false;
      response.assignSocket(request.socket);
      response.on("finish", () => stream.end());
      const understood = this.#understand(request, state);
      if ("status" in understood) answer(request, response, understood);
      else
        await forwardUpgrade(request, response, stream, understood, (final) =>
          answer(request, response, final),
        );
    });
  }

  /** A CONNECT behind other requests of one connection; the first one never comes here. */
  #onConnect(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    guardErrors(stream);
    const state = this.#states.get(stream);
    if (state === undefined) return;
    inTurn(state, async () => {
      if (stream.destroyed) return;
      const version = versionOf(request);
      const destination = parseConnectTarget(request.url ?? "");
      if (destination === null || hasBody(request))
        return endWithReply(stream, encodeAnswer(BAD_REQUEST, version, false));
      const { client } = state;
      const user = identify(client.accounts, request.headers["proxy-authorization"]);
      if (user === undefined)
        return endWithReply(stream, encodeAnswer(AUTHENTICATION_REQUIRED, version, false));
      if (head.length > 0) stream.unshift(head);
      state.silence.leave();
      const { connection } = client;
      this.#env.accept(tunnelSession(connection, { version, user, destination }, this.#env));
    });
  }

  #onMalformed(error: NodeJS.ErrnoException, stream: Duplex): void {
    // In the middle of an answer another one would be taken for a part of it.
    const { response = null } = this.#states.get(stream) ?? {};
    const isAnswering = response !== null && response.headersSent && !response.writableFinished;
    if (stream.destroyed || isAnswering || error.code === "ECONNRESET") stream.destroy();
    else endWithReply(stream, encodeAnswer(faultOf(error), "1.1", false));
  }

  #understand(request: IncomingMessage, { client, upstream }: ClientState): Forwarded | Answer {
    const user = identify(client.accounts, request.headers["proxy-authorization"]);
    if (user === undefined) return AUTHENTICATION_REQUIRED;
    const { method = "GET", url = "" } = request;
    const target = parsePlainTarget(url, method);
    if (target === null || isOdd(request)) return BAD_REQUEST;
    return { upstream, user, target, method, hasBody: hasBody(request) };
  }
}

function inTurn(state: ClientState, work: () => Promise<void>): void {
  const { client, silence } = state;
  silence.waiting++;
  state.turn = state.turn
    .then(work)
    .catch(() => client.connection.destroy()) // a fault costs this client alone
    .finally(() => {
      silence.waiting--;
      silence.broken();
    });
}

/** Browsers repeat the request with credentials on the same connection; an unread body would be in the way. */
function answer(request: IncomingMessage, response: ServerResponse, what: Answer): void {
  if (what.status !== 407 || hasBody(request)) response.shouldKeepAlive = false;
  response.sendDate = false;
  response.writeHead(what.status, what.reason, answerFields(what));
  response.end(request.method === "HEAD" ? undefined : `${what.text}\n`);
}

const TOO_LONG: Answer = {
  status: 431,
  reason: "Request Header Fields Too Large",
  text: "More than 64 KiB.",
};
const LATE: Answer = { status: 408, reason: "Request Timeout", text: "No request in time." };

function faultOf({ code }: NodeJS.ErrnoException): Answer {
  if (code === "HPE_HEADER_OVERFLOW") return TOO_LONG;
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? LATE : BAD_REQUEST;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}

/** Well-formed for the parser, but not what one proxy may hand to another server (RFC 9112 §3.2); HTTP/0.9, too. */
function isOdd(request: IncomingMessage): boolean {
  return request.httpVersionMajor !== 1 || countOf(request.rawHeaders, "host") > 1 || hasOddCoding(request);
}

/** The body is taken out of `chunked` and nothing else; HTTP/1.0 has no transfer codings at all. */
function hasOddCoding({ headers, httpVersion }: IncomingMessage): boolean {
  const coding = headers["transfer-encoding"];
  return coding !== undefined && (coding.trim().toLowerCase() !== "chunked" || httpVersion === "1.0");
}

function versionOf({ httpVersion }: IncomingMessage): "1.0" | "1.1" {
  return httpVersion === "1.0" ? "1.0" : "1.1";
}
