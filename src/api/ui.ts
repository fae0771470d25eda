/** The dashboard: files of one folder, whatever the path tries. */
import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { extname, join, sep } from "node:path";
import type { FastifyReply } from "fastify";
import { route, type Route } from "./route.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".webmanifest": "application/manifest+json",
  ".txt": "text/plain; charset=utf-8",
  ".xml": "text/xml; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".avif": "image/avif",
  ".ico": "image/x-icon",
  ".woff": "font/woff",
  ".woff2": "font/woff2",
  ".ttf": "font/ttf",
  ".otf": "font/otf",
  ".wasm": "application/wasm",
};

/** What our own page may do: load from here, talk to here, and nothing else. No page may frame it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

const OUR_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "referrer-policy": "no-referrer",
};

const NOT_BUILT =
  "404 the dashboard has not been built: `npm start`, `npm test` or `node scripts/ui.mjs` in the checkout does\n";
const NOT_THERE =
  "404 external-ui holds no index.html yet: POST /upgrade/ui downloads external-ui-url there\n";

const NOT_FOUND = "404 page not found\n";

interface Site {
  readonly folder: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Said where there is no first page. */
  readonly absent: string;
}

/** `ours`: the built-in dashboard, served with a strict policy; others may need more and get none. */
export function uiRoutes(folder: string | null, ours: boolean): readonly Route[] {
  if (folder === null) return [];
  const site = ours
    ? { folder, headers: OUR_HEADERS, absent: NOT_BUILT }
    : { folder, headers: {}, absent: NOT_THERE };
  return [
    route({
      method: "GET",
      scope: "open",
      path: "/ui",
      summary: "To the dashboard",
      answer: { status: 307, description: "See /ui/" },
      handle: ({ reply }) => redirect(reply, "/ui/"),
    }),
    route({
      method: "GET",
      scope: "open",
      path: "/ui/*",
      summary: "A file of the dashboard",
      answer: { status: 200, type: "*/*", description: "The file" },
      faults: { 307: "It is a folder: see the same with a slash" },
      handle: ({ params, reply }) => serveFile(site, params["*"] ?? "", reply),
    }),
  ];
}

function redirect(reply: FastifyReply, location: string): FastifyReply {
  return reply.code(307).header("location", location).type("text/plain; charset=utf-8").send("");
}

async function serveFile(site: Site, path: string, reply: FastifyReply): Promise<FastifyReply> {
  const found = await locate(site.folder, path);
  if (found === null) return missing(reply, path === "" || path === "index.html" ? site.absent : NOT_FOUND);
  const info = await stat(found);
  if (info.isDirectory()) {
    if (path !== "" && !path.endsWith("/")) return redirect(reply, `/ui/${encodeURI(path)}/`);
    return serveFile(site, `${path}index.html`, reply);
  }
  if (!info.isFile()) return missing(reply, NOT_FOUND);
  const type = TYPES[extname(found).toLowerCase()] ?? "application/octet-stream";
  return reply
    .code(200)
    .headers(site.headers)
    .type(type)
    .header("content-length", info.size)
    .header("x-content-type-options", "nosniff")
    .header("cache-control", "no-cache") // names stay the same when the dashboard is replaced
    .send(info.size === 0 ? "" : createReadStream(found, { end: info.size - 1 }));
}

function missing(reply: FastifyReply, text: string): FastifyReply {
  return reply.code(404).type("text/plain; charset=utf-8").send(text);
}

/** The real path, or null where there is nothing below the folder; symbolic links that lead out count as nothing. */
async function locate(folder: string, path: string): Promise<string | null> {
  const segments = path.split("/").filter((segment) => segment !== "");
  if (!segments.every(isPlain)) return null;
  try {
    const root = await realpath(folder);
    const real = await realpath(join(root, ...segments));
    return real === root || real.startsWith(root.endsWith(sep) ? root : root + sep) ? real : null;
  } catch {
    return null; // not there, or not readable: the answer does not say which
  }
}

/** Neither a way up, nor hidden, nor what another system would read as a separator, a drive or a stream. */
function isPlain(segment: string): boolean {
  return !segment.startsWith(".") && !/[\p{Cc}\\:]/u.test(segment);
}
