import type { WrittenBook } from "#providers/own-copy.ts";

/** What was written where, as long as the test. */
export function memoryBook(): WrittenBook {
  const known = new Map<string, readonly string[]>();
  return { get: (file) => known.get(file) ?? [], set: (file, hashes) => void known.set(file, hashes) };
}
