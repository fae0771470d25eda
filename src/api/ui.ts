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

export function uiRoutes(folder: string | null): readonly Route[] {
  if (folder === null) return [];
  return [
    route({
      method: "GET",
      path: "/ui",
      access: "open",
      summary: "To the dashboard",
      answer: { status: 307, description: "See /ui/" },
      handle: ({ reply }) => redirect(reply, "/ui/"),
    }),
    route({
      method: "GET",
      path: "/ui/*",
      access: "open",
      summary: "A file of the dashboard",
      answer: { status: 200, type: "*/*", description: "The file" },
      handle: ({ params, reply }) => serveFile(folder, params["*"] ?? "", reply),
    }),
  ];
}

function redirect(reply: FastifyReply, location: string): FastifyReply {
  return reply.code(307).header("location", location).type("text/plain; charset=utf-8").send("");
}

async function serveFile(folder: string, path: string, reply: FastifyReply): Promise<FastifyReply> {
  const found = await locate(folder, path);
  if (found === null) return missing(reply);
  const info = await stat(found);
  if (info.isDirectory()) {
    if (path !== "" && !path.endsWith("/")) return redirect(reply, `/ui/${encodeURI(path)}/`);
    return serveFile(folder, `${path}index.html`, reply);
  }
  if (!info.isFile()) return missing(reply);
  const type = TYPES[extname(found).toLowerCase()] ?? "application/octet-stream";
  return reply
    .code(200)
    .type(type)
    .header("content-length", info.size)
    .header("x-content-type-options", "nosniff")
    .header("cache-control", "no-cache") // names stay the same when the dashboard is replaced
    .send(info.size === 0 ? "" : createReadStream(found, { end: info.size - 1 }));
}

function missing(reply: FastifyReply): FastifyReply {
  return reply.code(404).type("text/plain; charset=utf-8").send("404 page not found\n");
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
    return null; // not there, or not readable: the same to a stranger
  }
}

/** Neither a way up, nor hidden, nor what another system would read as a separator, a drive or a stream. */
function isPlain(segment: string): boolean {
  return !segment.startsWith(".") && !/[\p{Cc}\\:]/u.test(segment);
}
