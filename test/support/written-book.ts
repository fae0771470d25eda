import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { WrittenBook } from "#providers/own-copy.ts";

/** What was written where, as long as the test; `files` were written by weir before. */
export function memoryBook(files: readonly string[] = []): WrittenBook {
  const known = new Map<string, readonly string[]>();
  for (const file of files) known.set(file, [createHash("sha256").update(readFileSync(file)).digest("hex")]);
  return { get: (file) => known.get(file) ?? [], set: (file, hashes) => void known.set(file, hashes) };
}
