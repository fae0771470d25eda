/** Downloads over any outbound: HTTP/1.1 on a stream that is already dialled, bounded in time, size and redirects. */
import type { Duplex } from "node:stream";
import { request, type IncomingMessage } from "#lib/node-http.ts";
import { DialError, messageOf } from "#core/errors.ts";
import type { Dialer } from "#core/outbound.ts";
import type { Trust } from "#core/trust.ts";
import { openUrlStream } from "#net/dial/url-stream.ts";
import { readBody, unpack } from "./body.ts";

export interface FetchRequest {
  /** http or https. */
  readonly url: string;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly userAgent: string;
  /** Sent as If-None-Match; null: not at all. */
  readonly etag: string | null;
  readonly dialer: Dialer;
  /** For everything together, redirects and body included. */
  readonly timeoutMs: number;
  /** Of the body, packed and unpacked. More is an error: half a list is worse than the old one. */
  readonly maxBytes: number;
  readonly trust: Trust;
}

export interface Fetched {
  /** Null: what is here already is the newest (304). */
  readonly body: Uint8Array | null;
  readonly etag: string | null;
  /** The header `subscription-userinfo`. */
  readonly userInfo: string | null;
}

const MOST_REDIRECTS = 5;

/** What is made of an answer with status 200 or, where an ETag was sent, 304. `host` for messages. */
type Take<T> = (response: IncomingMessage, host: string) => Promise<T>;

/** Throws `DialError`. Messages name the host only: the path and query of a subscription's address are a secret. */
export function fetchResource(asked: FetchRequest, signal: AbortSignal): Promise<Fetched> {
  return fetchWith(asked, (response, host) => inMemory(response, host, asked.maxBytes), signal);
}

/** The same with another way to read the answer, such as into a file. */
export async function fetchWith<T>(asked: FetchRequest, take: Take<T>, signal: AbortSignal): Promise<T> {
  const timer = AbortSignal.timeout(asked.timeoutMs);
  const both = AbortSignal.any([signal, timer]);
  let url = new URL(asked.url);
  const first = url;
  try {
    for (let hop = 0; ; hop++) {
      const answer = await fetchOnce(url, url.origin === first.origin, { asked, take }, both);
      if (!(answer instanceof URL)) return answer;
      if (hop === MOST_REDIRECTS)
        throw new DialError("failed", `${first.host} redirects more than ${MOST_REDIRECTS} times`);
      url = answer;
    }
  } catch (error) {
    if (timer.aborted)
      throw new DialError("timeout", `${url.host}: not complete in ${asked.timeoutMs} ms`, { cause: error });
    if (signal.aborted) throw new DialError("aborted", "the download was given up", { cause: error });
    if (error instanceof DialError) throw error;
    throw new DialError("failed", `${url.host}: ${messageOf(error)}`, { cause: error });
  }
}

/** `own`: the first server, the only one that gets the headers which the user configured. */
async function fetchOnce<T>(
  url: URL,
  own: boolean,
  { asked, take }: { readonly asked: FetchRequest; readonly take: Take<T> },
  signal: AbortSignal,
): Promise<T | URL> {
  const stream = await openUrlStream(url, asked, signal);
  try {
    const response = await ask(stream, url, own, asked, signal);
    const { statusCode = 0, headers } = response;
    if ([301, 302, 303, 307, 308].includes(statusCode)) return redirectOf(url, headers.location);
    if (statusCode !== 200 && (statusCode !== 304 || asked.etag === null))
      throw new DialError("failed", `${url.host} answered with HTTP status ${statusCode}`);
    return await take(response, url.host);
  } finally {
    stream.destroy();
  }
}

async function inMemory(response: IncomingMessage, host: string, maxBytes: number): Promise<Fetched> {
  const { statusCode, headers } = response;
  const etag = headers.etag ?? null;
  const userInfo = textOf(headers["subscription-userinfo"]);
  if (statusCode === 304) return { body: null, etag, userInfo };
  const packed = await readBody(response, host, maxBytes);
  const body = await unpack(packed, textOf(headers["content-encoding"]) ?? "", host, maxBytes);
  if (body.length === 0) throw new DialError("failed", `${host} answered with nothing`);
  return { body, etag, userInfo };
}

function ask(
  stream: Duplex,
  url: URL,
  own: boolean,
  { headers, userAgent, etag }: FetchRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  const sent = request({
    createConnection: () => stream, // the name below is never resolved
    host: "provider.invalid",
    path: `${url.pathname}${url.search}`,
    headers: {
      host: url.host,
      "user-agent": userAgent,
      accept: "*/*",
      "accept-encoding": "gzip, br, zstd",
      connection: "close",
      ...(credentials === ":"
        ? {}
        : { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` }),
      ...(own ? lowerKeys(headers) : {}),
      ...(own && etag !== null ? { "if-none-match": etag } : {}),
    },
    signal,
  });
  sent.on("response", (response) => {
    response.on("error", () => {}); // a response that is not read to its end, such as a redirect's
    resolve(response);
  });
  sent.on("error", reject);
  sent.on("close", () =>
    reject(new DialError("failed", `${url.host} closed the connection without an answer`)),
  );
  sent.end();
  return promise;
}

function lowerKeys(headers: FetchRequest["headers"]): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([key, values]) => [key.toLowerCase(), [...values]]));
}

function redirectOf(from: URL, location: string | undefined): URL {
  const to = location === undefined ? null : URL.parse(location, from);
  if (to === null || !/^https?:$/.test(to.protocol) || to.hostname === "")
    throw new DialError("failed", `${from.host} redirects to nowhere`);
  return to;
}

function textOf(value: string | readonly string[] | undefined): string | null {
  return value === undefined ? null : String(value);
}
