/** The files of a folder, as a web server shows them. */
import { open, realpath, stat } from "node:fs/promises";
import { extname, join, sep } from "node:path";
import type { SafeFiles } from "#core/files.ts";
import type { Field } from "#transport/http3/qpack.ts";
import type { Http3Answer, Http3Request } from "#transport/http3/server.ts";
import { bare, dateField, notFound } from "./answers.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".htm": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
  ".xml": "text/xml; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".ico": "image/x-icon",
  ".woff": "font/woff",
  ".woff2": "font/woff2",
  ".pdf": "application/pdf",
  ".wasm": "application/wasm",
};
const INDEX = "index.html";

/** Throws `ConfigError` where the folder is not inside a safe path. */
export function openFolder(files: SafeFiles, path: string): (request: Http3Request) => Promise<Http3Answer> {
  const root = files.resolve(path);
  return async (request) => {
    if (request.method !== "GET" && request.method !== "HEAD") return bare(405, [["allow", "GET, HEAD"]]);
    const name = nameIn(request.path);
    if (name === null) return notFound();
    try {
      return await show(root, name, request);
    } catch {
      return notFound(); // there is none, it is a folder, or it must not be read
    }
  };
}

/** The part behind the folder; null: no file is called so. Files that begin with a dot are not shown. */
function nameIn(path: string): string | null {
  try {
    const name = decodeURIComponent(path.split(/[?#]/, 1)[0] ?? "");
    const parts = name.split("/");
    if (!name.startsWith("/") || /[\0\\]/.test(name)) return null;
    return parts.some((part) => part.startsWith(".") && part !== ".well-known") ? null : name;
  } catch {
    return null;
  }
}

/** Throws the system's error. */
async function show(root: string, name: string, { method, fields }: Http3Request): Promise<Http3Answer> {
  const whole = await realpath(root);
  const found = await realpath(join(whole, name.endsWith("/") ? `${name}${INDEX}` : name));
  if (!found.startsWith(`${whole}${sep}`)) return notFound(); // a link that leads out of it
  const about = await stat(found);
  if (about.isDirectory()) return bare(301, [["location", `${name}/`]]);
  if (!about.isFile()) return notFound();
  const modified = about.mtime.toUTCString();
  const common: Field[] = [["last-modified", modified], dateField()];
  if (fields.some(([key, value]) => key === "if-modified-since" && value === modified))
    return { status: 304, fields: common, body: null };
  const file = method === "HEAD" || about.size === 0 ? null : await open(found);
  return {
    status: 200,
    fields: [["content-type", typeOf(found)], ["content-length", String(about.size)], ...common],
    body: file?.createReadStream({ end: about.size - 1 }) ?? null, // what is added meanwhile is not announced
  };
}

function typeOf(file: string): string {
  return TYPES[extname(file).toLowerCase()] ?? "application/octet-stream";
}
