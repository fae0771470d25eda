/** A value laid over the one that is there: what is equal keeps its text. */
import { isMap as isMapNode, isScalar, isSeq } from "yaml";
import type { JsonValue } from "#core/control.ts";
import { textOf } from "#config/yaml-nodes.ts";
import type { Splice } from "./splice.ts";
import { isFlow, valueAt, type Collection } from "./entries.ts";
import { insertEntry } from "./insert.ts";
import { isSame, plainAt } from "./plain.ts";
import { removeEntry } from "./remove.ts";
import { flowPair, flowText, isMap, itemLines, pairLines } from "./render.ts";
import { replaceValue } from "./replace.ts";

/** `plain`: the value that is there, as the file's reader has it. */
export function mergeValue(
  text: string,
  collection: Collection,
  at: number,
  { plain, value }: { readonly plain: unknown; readonly value: JsonValue },
): readonly Splice[] {
  if (isSame(plain, value)) return [];
  const old = valueAt(collection, at);
  if (isMapNode(old) && !isFlow(old) && isMap(value)) {
    const splices = mergeMap(text, old, plain, value);
    if (splices !== null) return splices;
  }
  if (isSeq(old) && !isFlow(old) && Array.isArray(value) && value.length > 0)
    return mergeList(text, old, plain, value);
  return replaceValue(text, collection, at, value);
}

/** Null: they have no key in common. */
function mergeMap(
  text: string,
  map: Collection,
  plain: unknown,
  value: { readonly [key: string]: JsonValue },
): readonly Splice[] | null {
  const keys = map.items.map((pair) => ("key" in pair && isScalar(pair.key) ? textOf(pair.key) : "<<"));
  if (!keys.some((key) => key === "<<" || Object.hasOwn(value, key))) return null;
  const own = keys.flatMap((key, at) => {
    if (Object.hasOwn(value, key))
      return mergeValue(text, map, at, { plain: plainAt(plain, [key]), value: value[key] ?? null });
    return key === "<<" ? [] : removeEntry(text, map, at);
  });
  const fresh = Object.entries(value).flatMap(([key, member]) =>
    keys.includes(key) || isSame(plainAt(plain, [key]), member)
      ? []
      : insertEntry(text, map, keys.length, writtenPair(key, member)),
  );
  return [...own, ...fresh];
}

function mergeList(
  text: string,
  list: Collection,
  plain: unknown,
  value: readonly JsonValue[],
): readonly Splice[] {
  const old: readonly unknown[] = Array.isArray(plain) ? plain : [];
  const most = Math.min(old.length, value.length);
  let head = 0;
  while (head < most && isSame(old[head], value[head])) head++;
  let tail = 0;
  while (tail < most - head && isSame(old.at(-1 - tail), value.at(-1 - tail))) tail++;
  const splices: Splice[] = [];
  const end = old.length - tail;
  for (let at = head; at < end; at++) {
    const next = value[at];
    if (at >= value.length - tail || next === undefined) splices.push(...removeEntry(text, list, at));
    else splices.push(...mergeValue(text, list, at, { plain: old[at], value: next }));
  }
  for (const item of value.slice(end, value.length - tail))
    splices.push(...insertEntry(text, list, end, writtenItem(list, item)));
  return splices;
}

/** An item is written as the one before it: in one line where that is. */
export function writtenItem(list: Collection, value: JsonValue): Parameters<typeof insertEntry>[3] {
  const last = valueAt(list, list.items.length - 1);
  const isInline = isMapNode(last) && isFlow(last);
  return { flow: flowText(value), lines: isInline ? [`- ${flowText(value)}`] : itemLines(value) };
}

export function writtenPair(key: string, value: JsonValue): Parameters<typeof insertEntry>[3] {
  return { flow: flowPair(key, value), lines: pairLines(key, value) };
}
