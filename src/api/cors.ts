/** Cross-origin rules, the outermost layer: errors carry the headers too, or a browser would only report "network error". */
import type { FastifyReply, FastifyRequest } from "fastify";

export interface CorsOptions {
  /** Exact origins, each with at most one `*`; empty or `*`: all. */
  readonly allowOrigins: readonly string[];
  readonly allowPrivateNetwork: boolean;
  /** The configuration has no list: every origin may ask, with the secret. */
  readonly isDefault?: boolean;
}

const METHODS = new Set(["GET", "POST", "PUT", "PATCH", "DELETE"]);
const HEADERS = new Set(["content-type", "authorization", "origin", "accept"]);
const MAX_AGE_SECONDS = "300";

export class Cors {
  readonly #options: CorsOptions;
  /** Every origin may read answers. */
  readonly isPublic: boolean;

  constructor(options: CorsOptions) {
    this.#options = options;
    this.isPublic = options.allowOrigins.length === 0 || options.allowOrigins.includes("*");
  }

  allows(origin: string): boolean {
    return this.isPublic || this.#options.allowOrigins.some((pattern) => matches(pattern, origin));
  }

  /** May this page do without a secret? Null: a page that does not say its origin. */
  trusts(origin: string | null): boolean {
    if (this.#options.isDefault === true) return false;
    return origin === null ? this.isPublic : this.allows(origin);
  }

  /** Sets the headers that the request deserves. True: it was a preflight and needs only a 200. */
  apply(request: FastifyRequest, reply: FastifyReply): boolean {
    const { origin } = request.headers;
    const method = request.headers["access-control-request-method"];
    void reply.header("vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    const preflight = request.method === "OPTIONS" && origin !== undefined && method !== undefined;
    if (origin === undefined || !this.allows(origin)) return preflight;
    if (preflight && !this.#grant(request, reply, method)) return true;
    void reply.header("access-control-allow-origin", this.isPublic ? "*" : origin);
    return preflight;
  }

  #grant(request: FastifyRequest, reply: FastifyReply, method: string): boolean {
    const wanted = (request.headers["access-control-request-headers"] ?? "").toLowerCase();
    const names = wanted.split(",").map((name) => name.trim());
    if (!METHODS.has(method) || !names.every((name) => name === "" || HEADERS.has(name))) return false;
    void reply.header("access-control-allow-methods", [...METHODS].join(", "));
    if (wanted !== "") void reply.header("access-control-allow-headers", names.join(", "));
    void reply.header("access-control-max-age", MAX_AGE_SECONDS);
    const isPrivate = request.headers["access-control-request-private-network"] === "true";
    if (isPrivate && this.#options.allowPrivateNetwork) {
      void reply.header("access-control-allow-private-network", "true");
    }
    return true;
  }
}

function matches(pattern: string, origin: string): boolean {
  const wanted = pattern.toLowerCase();
  const given = origin.toLowerCase();
  const star = wanted.indexOf("*");
  if (star < 0) return wanted === given;
  const tail = wanted.slice(star + 1);
  return given.length >= wanted.length - 1 && given.startsWith(wanted.slice(0, star)) && given.endsWith(tail);
}
