/** XHTTP where a stream is one request: its body is the way up, the answer's the way down. */
import type { HttpPlace } from "#core/wire-details.ts";
import { hostMatches, pathOf } from "#transport/http-head.ts";
import type { Field } from "#transport/http-fields/section.ts";
import { basePath, hasPadding } from "./padding.ts";

export interface StreamOneRequest {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  readonly referer: string;
}

/** Of an answer with a body, beside its padding. */
export const BODY_FIELDS: readonly Field[] = [
  ["content-type", "text/event-stream"],
  ["cache-control", "no-store"],
  ["x-accel-buffering", "no"],
];

/** The field that pads an answer. */
export const PADDING_FIELD = "x-padding";

/** Is the path that of XHTTP, or of a session or packet of it? */
export function isBelow(path: string, base: string): boolean {
  return path.startsWith(base) || `${path}/` === base;
}

/** `stream`: the request is one. `session`: it belongs to one of the other modes. Else the status of its refusal. */
export function judge(
  { method, path: asked, authority, referer }: StreamOneRequest,
  { path: served, hosts }: HttpPlace,
): "stream" | "session" | 400 | 404 {
  const [path, base] = [pathOf(asked), basePath(served)];
  if (!isBelow(path, base) || !hostMatches(authority, hosts)) return 404;
  if (!hasPadding(referer)) return 400;
  if (path.length > base.length) return "session";
  return method === "POST" ? "stream" : 404;
}
