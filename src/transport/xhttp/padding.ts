import { randomInt } from "node:crypto";

/** So many letters X hide the lengths of requests and answers; the server refuses other lengths. */
const MIN_PADDING = 100;
export const MAX_PADDING = 1000;
/** In one POST of packet-up; more is answered with 413. */
export const MAX_POST_BYTES = 1_000_000;

export function padding(): string {
  return "X".repeat(randomInt(MIN_PADDING, MAX_PADDING + 1));
}

/** `Referer: https://host/path?x_padding=` and then any text. */
export function hasPadding(referer: string): boolean {
  const value = /[?&]x_padding=([^&]*)/.exec(referer)?.[1] ?? "";
  return value.length >= MIN_PADDING && value.length <= MAX_PADDING;
}

/** The path before the session id: always with a slash at its end; a query is kept apart. */
export function basePath(path: string): string {
  return path.endsWith("/") ? path : `${path}/`;
}
