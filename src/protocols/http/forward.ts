/** One request on its way to the origin and its answer back. */
import type { Duplex } from "node:stream";
import {
  type ClientRequest,
  type IncomingMessage,
  request as sendRequest,
  type ServerResponse,
} from "#lib/node-http.ts";
import { DialError } from "#core/errors.ts";
import { guardErrors } from "#net/listen/accept.ts";
import { type Answer, answerTo } from "./answers.ts";
import type { PlainTarget } from "./authority.ts";
import { endToEnd, withoutProxyFields } from "./forward-fields.ts";
import type { Upstream, UpstreamOptions } from "./upstream.ts";

/** A request that was understood and may go. */
export interface Forwarded {
  readonly upstream: Upstream;
  readonly user: string | null;
  readonly target: PlainTarget;
  readonly method: string;
  readonly hasBody: boolean;
}

type Fail = (answer: Answer) => void;

const MAX_HEAD_BYTES = 64 * 1024;

/** Settles when the answer is out, or when client or origin gave up. `fail` is for an origin that cannot be had. */
export function forward(
  request: IncomingMessage,
  response: ServerResponse,
  what: Forwarded,
  fail: Fail,
): Promise<void> {
  return exchange(response, (isRetry, retry) => {
    const outgoing = send(request, what, endToEnd(request.rawHeaders, ["host"]));
    outgoing.on("response", (incoming) => respond(request, incoming, response, fail));
    outgoing.on("information", (info) => inform(request, response, info.statusCode, info.rawHeaders));
    outgoing.on("error", (error) => {
      // The origin closed a kept connection in the moment we used it (RFC 9112 §9.3.1 allows one more try).
      const stale = outgoing.reusedSocket && !(error instanceof DialError) && !isRetry;
      if (stale && !what.hasBody && !response.headersSent && isRepeatable(what.method)) retry();
      else giveUp(request, response, error, fail);
    });
    if (what.hasBody) request.pipe(outgoing);
    else outgoing.end();
    return outgoing;
  });
}

/** As `forward`; where the origin changes protocols `stream` and its connection become one. */
export function forwardUpgrade(
  request: IncomingMessage,
  response: ServerResponse,
  stream: Duplex,
  what: Forwarded,
  fail: Fail,
): Promise<void> {
  return exchange(response, () => {
    const outgoing = send(request, what, withoutProxyFields(request.rawHeaders, ["host"]));
    outgoing.on("response", (incoming) => respond(request, incoming, response, fail));
    outgoing.on("error", (error) => giveUp(request, response, error, fail));
    outgoing.on("upgrade", (incoming, far: Duplex, head: Buffer) => {
      if (head.length > 0) far.unshift(head);
      response.detachSocket(request.socket);
      const fields = withoutProxyFields(incoming.rawHeaders);
      stream.write(encodeHead(`HTTP/1.1 101 ${incoming.statusMessage || "Switching Protocols"}`, fields));
      splice(stream, far);
    });
    outgoing.end();
    return outgoing;
  });
}

/** Runs until the response is closed; a client that leaves takes its request to the origin along. */
function exchange(
  response: ServerResponse,
  start: (isRetry: boolean, retry: () => void) => ClientRequest,
): Promise<void> {
  return new Promise((resolve) => {
    let outgoing = start(false, () => void (outgoing = start(true, () => {})));
    response.on("close", () => {
      if (!response.writableFinished) outgoing.destroy();
      resolve();
    });
  });
}

function send(request: IncomingMessage, what: Forwarded, fields: string[]): ClientRequest {
  const { upstream, user, target, method, hasBody } = what;
  const options: UpstreamOptions = {
    destination: target.destination,
    user,
    agent: upstream,
    method,
    path: target.path,
    headers: ["Host", target.host, ...fields, ...bodyFields(request, method, hasBody)],
    maxHeaderSize: MAX_HEAD_BYTES,
    insecureHTTPParser: false,
  };
  upstream.keepOnly(options);
  const outgoing = sendRequest(options);
  outgoing.maxHeadersCount = 0;
  if (hasBody) outgoing.flushHeaders(); // the client may wait for the origin's 100 before it sends the body
  return outgoing;
}

const BODY_METHODS: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

/** The library would choose chunks for a method that usually has a body; say that there is none. */
function bodyFields({ headers }: IncomingMessage, method: string, hasBody: boolean): string[] {
  if (headers["content-length"] !== undefined) return [];
  if (hasBody) return ["Transfer-Encoding", "chunked"];
  return BODY_METHODS.has(method) ? ["Content-Length", "0"] : [];
}

function respond(
  request: IncomingMessage,
  incoming: IncomingMessage,
  response: ServerResponse,
  fail: Fail,
): void {
  const coding = incoming.headers["transfer-encoding"];
  if (coding !== undefined && coding.trim().toLowerCase() !== "chunked") {
    incoming.destroy();
    return fail(BAD_CODING);
  }
  const fields = endToEnd(incoming.rawHeaders);
  if (/\bclose\b/i.test(String(request.headers["proxy-connection"]))) response.shouldKeepAlive = false;
  fields.push("Proxy-Connection", response.shouldKeepAlive ? "keep-alive" : "close");
  response.sendDate = false;
  response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage ?? "", fields);
  response.flushHeaders(); // events may be slow to follow
  incoming.on("error", () => request.socket.destroy()); // cut short: the client must not take it for whole
  incoming.pipe(response);
}

const BAD_CODING: Answer = {
  status: 502,
  reason: "Bad Gateway",
  text: "The destination used a transfer coding that was not asked for.",
};

/** 1xx answers belong to HTTP/1.1. An origin may say them without end: those that its client is behind with are left out. */
function inform(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  rawFields: readonly string[],
): void {
  const { socket } = request;
  if (response.headersSent || request.httpVersion === "1.0" || socket.writableNeedDrain) return;
  const line = `HTTP/1.1 ${status} ${status === 100 ? "Continue" : "Information"}`;
  socket.write(encodeHead(line, endToEnd(rawFields)));
}

function giveUp(request: IncomingMessage, response: ServerResponse, error: Error, fail: Fail): void {
  const final = response.headersSent ? null : answerTo(error);
  if (final === null) request.socket.destroy();
  else if (!response.destroyed) fail(final);
}

const REPEATABLE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

function isRepeatable(method: string): boolean {
  return REPEATABLE.has(method);
}

/** The library has checked the values: they hold no line ends. */
function encodeHead(startLine: string, raw: readonly string[]): Buffer {
  let head = `${startLine}\r\n`;
  for (let at = 0; at + 1 < raw.length; at += 2) head += `${raw[at]}: ${raw[at + 1]}\r\n`;
  return Buffer.from(`${head}\r\n`, "latin1");
}

/** Rare and never bulky: `pipe` keeps the ends and the back-pressure; closing one side closes the other. */
function splice(left: Duplex, right: Duplex): void {
  for (const [from, to] of [
    [left, right],
    [right, left],
  ] as const) {
    guardErrors(from);
    from.pipe(to);
    from.on("close", () => {
      if (from.readableEnded && !to.writableFinished) to.once("finish", () => to.destroy());
      else to.destroy();
    });
  }
}
