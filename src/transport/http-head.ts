import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import type { Decoder } from "#net/stream/byte-reader.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";

/** A request line or status line with its header fields; names in lower case, the first of equal ones counts. */
export interface HttpHead {
  readonly start: string;
  readonly fields: ReadonlyMap<string, string>;
}

const MAX_HEAD_BYTES = 8192;
const MAX_FIELDS = 100;
const END = Buffer.from("\r\n\r\n");

export const decodeHead: Decoder<HttpHead> = (bytes, seen) => {
  const end = bytes.indexOf(END, Math.max(0, seen - END.length + 1));
  if (end >= 0 ? end > MAX_HEAD_BYTES : bytes.length > MAX_HEAD_BYTES)
    throw new ProtocolError(`an HTTP head of more than ${MAX_HEAD_BYTES} bytes`);
  if (end < 0) return null;
  return { value: parseHead(bytes.toString("latin1", 0, end)), size: end + END.length };
};

function parseHead(text: string): HttpHead {
  const [start = "", ...lines] = text.split("\r\n");
  if (lines.length > MAX_FIELDS) throw new ProtocolError(`more than ${MAX_FIELDS} HTTP header fields`);
  const fields = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) throw new ProtocolError("an HTTP header field without a name");
    const name = line.slice(0, colon).toLowerCase();
    if (!fields.has(name)) fields.set(name, line.slice(colon + 1).trim());
  }
  return { start, fields };
}

/** Reads one head; bytes behind it stay in the stream. */
export async function readHead(stream: Duplex, timeoutMs: number, signal?: AbortSignal): Promise<HttpHead> {
  using reader = new ByteReader(stream, {
    timeoutMs,
    maxBytes: 2 * MAX_HEAD_BYTES + 65_536,
    ...(signal === undefined ? {} : { signal }),
  });
  return await reader.take(decodeHead);
}

/** Refuses what would end a header field early: values come from configuration, but a stray line break is a fault. */
export function encodeHead(start: string, fields: Iterable<readonly [string, string]>): Buffer {
  const lines = [start];
  for (const [name, value] of fields) lines.push(`${name}: ${value}`);
  if (lines.some((line) => /[\r\n\0]/.test(line)))
    throw new ProtocolError("an HTTP header field with a line break");
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

/** The path without its query, for comparison. */
export function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

export interface ConfiguredPath {
  readonly path: string;
  /** From `?ed=N`; 0: none. */
  readonly earlyDataBytes: number;
}

/** `/ws?ed=2048&x=1` is the path `/ws?x=1` with 2048 bytes of early data. Always begins with `/`. */
export function parseConfiguredPath(text: string): ConfiguredPath {
  const rooted = text.startsWith("/") ? text : `/${text}`;
  const at = rooted.indexOf("?");
  if (at < 0) return { path: rooted, earlyDataBytes: 0 };
  const parts = rooted.slice(at + 1).split("&");
  const size = parts.find((part) => /^ed=\d{1,6}$/.test(part));
  const query = parts.filter((part) => part !== size && part !== "").join("&");
  const path = rooted.slice(0, at);
  return { path: query === "" ? path : `${path}?${query}`, earlyDataBytes: Number(size?.slice(3) ?? 0) };
}

/** Is the host of a request, whatever its port, one of these? With none every host is. */
export function hostMatches(authority: string, hosts: readonly string[]): boolean {
  const host = authority.replace(/:\d+$/, "").toLowerCase();
  return hosts.length === 0 || hosts.some((one) => one.toLowerCase() === host);
}
