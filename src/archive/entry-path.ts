import { ProtocolError } from "#core/errors.ts";

/** A file or a folder. `path` holds at least one segment; none is empty, `.`, `..`, or means something to a file system. */
export interface ArchiveEntry {
  readonly path: readonly string[];
  /** Null: a folder. */
  readonly bytes: Uint8Array | null;
}

/** Longest name of a file on the usual file systems, in bytes. */
const MAX_SEGMENT_BYTES = 255;
const MAX_SEGMENTS = 32;

/** Device names of Windows, which no extension makes harmless. */
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;
/** Separators, drives and streams of other systems, and what a terminal would obey. */
const FORBIDDEN = /[\\:*?"<>|\p{Cc}]/u;

/**
 * The segments of an entry's name; empty for the archive's own root (`./`). A trailing slash is allowed. Throws
 * `ProtocolError` for everything that could lead elsewhere on any system.
 */
export function entryPath(name: string): readonly string[] {
  const refuse = (why: string): never => {
    throw new ProtocolError(`the entry ${JSON.stringify(name.slice(0, 200))} ${why}`);
  };
  if (name.startsWith("/")) refuse("has an absolute name");
  const segments = name.split("/").filter((segment) => segment !== "" && segment !== ".");
  if (segments.includes("..")) refuse("leads out of the archive");
  if (segments.length > MAX_SEGMENTS) refuse(`lies deeper than ${MAX_SEGMENTS} folders`);
  for (const segment of segments) {
    if (FORBIDDEN.test(segment) || DEVICE.test(segment) || /[. ]$/.test(segment))
      refuse("has a name that is not portable");
    if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES) refuse("has a name that is too long");
  }
  return segments;
}

/** Names are UTF-8. Throws `ProtocolError`. */
export function decodeName(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ProtocolError("an entry's name is not UTF-8");
  }
}
