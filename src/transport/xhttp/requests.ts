/** The requests of an XHTTP node. */
import type { Http2Recipe } from "#core/wire-recipe.ts";
import type { HttpRequest } from "#transport/http-client.ts";
import { basePath, padding } from "./padding.ts";

export interface XhttpClientOptions {
  readonly scheme: "http" | "https";
  readonly authority: string;
  readonly path: string;
  readonly query: string;
  readonly mode: "packet-up" | "stream-one" | "stream-up";
  readonly headers: Readonly<Record<string, string>>;
  /** Streamed requests are not labelled as gRPC. */
  readonly noGrpcHeader: boolean;
  readonly maxPostBytes: number;
  readonly minPostsIntervalMs: number;
  /**
   * Of one stream, whose answers have not come: a way with a long round trip carries as much as one with a short one. Servers
   * keep some thirty that come before their turn.
   */
  readonly mostPosts: number;
}

interface Asked extends Pick<HttpRequest, "method" | "body"> {
  /** Behind the configured path. */
  readonly suffix: string;
  readonly own?: Readonly<Record<string, string>>;
}

export function requestOf(
  options: XhttpClientOptions,
  { method, suffix, body, own = {} }: Asked,
): HttpRequest {
  const { scheme, authority, query, headers } = options;
  const path = pathOf(options, suffix);
  return {
    method,
    scheme,
    authority,
    path: query === "" ? path : `${path}?${query}`,
    headers: { ...headers, referer: `${refererOf(options, path)}${padding()}`, ...own },
    body,
  };
}

/** One whose body is the way up. */
export function streamedRequest(options: XhttpClientOptions, suffix: string): HttpRequest {
  const own = options.noGrpcHeader ? {} : { "content-type": "application/grpc" };
  return requestOf(options, { method: "POST", suffix, body: "stream", own });
}

const pathOf = (options: XhttpClientOptions, suffix: string): string => `${basePath(options.path)}${suffix}`;

/** In front of its padding. */
const refererOf = ({ scheme, authority }: XhttpClientOptions, path: string): string =>
  `${scheme}://${authority}${path}?x_padding=`;

/** Of one connection of HTTP/1.1 (RFC 9113 §8.2.2). */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/** What opens a stream over HTTP/2 by itself; null: the mode takes several requests, or HTTP/2 has no such fields. */
export function streamOneRequest(
  options: XhttpClientOptions,
): Pick<Http2Recipe, "requests" | "isGrpc" | "paddedReferer"> | null {
  if (options.mode !== "stream-one") return null;
  const { method, scheme, authority, path, headers } = streamedRequest(options, "");
  const others = Object.entries(headers).filter(([name]) => name !== "referer");
  if (others.some(([name]) => CONNECTION_FIELDS.has(name))) return null;
  const pseudo = [
    [":method", method],
    [":scheme", scheme],
    [":authority", authority],
    [":path", path],
  ] as const;
  return {
    requests: [[...pseudo, ...others]],
    isGrpc: false,
    paddedReferer: refererOf(options, pathOf(options, "")),
  };
}
