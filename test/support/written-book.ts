import { readFileSync } from "node:fs";
import { hashOf, type WrittenBook } from "#providers/own-copy.ts";

/** What was written where, as long as the test; `files` were written by weir before. */
export function memoryBook(files: readonly string[] = []): WrittenBook {
  const known = new Map<string, readonly string[]>();
  for (const file of files) known.set(file, [hashOf(readFileSync(file))]);
  return { get: (file) => known.get(file) ?? [], set: (file, hashes) => void known.set(file, hashes) };
}
