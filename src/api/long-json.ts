/** JSON of long lists and maps: made and sent in pieces between which the event loop turns. */
import type { Slices } from "#core/slices.ts";

/** A list in an answer whose items are made when they are written; read once. */
export class LongList {
  readonly items: Iterable<unknown>;
  constructor(items: Iterable<unknown>) {
    this.items = items;
  }
}

/** The same of an object with many keys, each of which comes once. */
export class LongMap {
  readonly entries: Iterable<readonly [key: string, value: unknown]>;
  constructor(entries: Iterable<readonly [key: string, value: unknown]>) {
    this.entries = entries;
  }
}

/** Is it one of these, or an object with such a member? */
export function isLong(value: unknown): value is object {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  if (value instanceof LongList || value instanceof LongMap) return true;
  return Object.values(value).some((member) => member instanceof LongList || member instanceof LongMap);
}

/** All together are what `JSON.stringify` would say of plain lists and objects. */
function* jsonPieces(value: unknown): Generator<string, void, void> {
  if (!isLong(value)) yield JSON.stringify(value) ?? "null";
  else if (value instanceof LongList) yield* listPieces(value.items);
  else yield* mapPieces(value instanceof LongMap ? value.entries : Object.entries(value));
}

function* listPieces(items: Iterable<unknown>): Generator<string, void, void> {
  let before = "[";
  for (const item of items) {
    yield before;
    yield* jsonPieces(item);
    before = ",";
  }
  yield before === "[" ? "[]" : "]";
}

function* mapPieces(
  entries: Iterable<readonly [key: string, value: unknown]>,
): Generator<string, void, void> {
  let before = "{";
  for (const [key, value] of entries) {
    if (value === undefined) continue;
    yield `${before}${JSON.stringify(key)}:`;
    yield* jsonPieces(value);
    before = ",";
  }
  yield before === "{" ? "{}" : "}";
}

/** Characters that are sent together: made in about a millisecond. */
const CHUNK_CHARACTERS = 64 * 1024;

/** The JSON of a value in UTF-8, at least one chunk. */
export async function* jsonChunks(value: unknown, slices: Slices): AsyncGenerator<Buffer, void, void> {
  let text = "";
  for (const piece of jsonPieces(value)) {
    text += piece;
    if (text.length >= CHUNK_CHARACTERS) {
      yield Buffer.from(text);
      text = "";
    }
    if (slices.isOver) await slices.pause();
  }
  yield Buffer.from(text);
}
