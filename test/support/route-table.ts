/** The router's own table: what is really mounted, whatever was meant to be. */
import type { FastifyInstance } from "fastify";

export interface Row {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "PATCH" | "DELETE" | "OPTIONS";
  readonly pattern: string;
  /** The pattern with names filled in. */
  readonly url: string;
}

/** Read from Fastify's drawing: four columns a level, then the methods. */
export function routeTable(app: FastifyInstance): readonly Row[] {
  const path: string[] = [];
  return app
    .printRoutes({ commonPrefix: false })
    .split("\n")
    .flatMap((line) => {
      const [, indent, part, methods] = /^([│├└─ ]+)(\S+) \((.*)\)$/.exec(line) ?? [];
      if (indent === undefined || part === undefined || methods === undefined) return [];
      path.length = indent.length / 4 - 1;
      path.push(part);
      const pattern = path.join("").replaceAll(/\/+/g, "/").replace("/ui*", "/ui/*");
      const url = pattern
        .replace(":name", "Proxy")
        .replace(":provider", "remote%2F1")
        .replace(/:\w+|\*/g, "x");
      return methods.split(", ").map((method) => ({ method: method as Row["method"], pattern, url }));
    });
}

/** Paths that the secret of the svc block opens, not the Controller's. */
export const OWN_SECRET = /^\/api\/(admin|svc\/tokens|svc\/audit|svc\/webhooks|svc\/fleet)(\/|$)/;
/** What either secret opens. */
export const EITHER_SECRET = /^\/api\/svc\/session$/;
/** Answers without an end. */
export const STREAMS: ReadonlySet<string> = new Set(["/traffic", "/memory", "/logs", "/api/svc/events"]);
