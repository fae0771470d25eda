/**
 * Two people changed the same thing. What only one of them changed is taken over; what both changed differently is a
 * conflict that a person decides. Works on plain JSON; lists are values as a whole.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export interface Difference {
  /** Keys from the top. */
  readonly path: readonly string[];
  /** Undefined: absent. */
  readonly before: Json | undefined;
  /** The other user's version. */
  readonly theirs: Json | undefined;
  readonly mine: Json | undefined;
}

export interface Merge {
  /** What they changed and I did not: in the result. */
  readonly taken: readonly Difference[];
  /** What both changed. */
  readonly conflicts: readonly Difference[];
  /** The result, with mine or theirs at each conflict. */
  resolve(theirs: ReadonlySet<Difference>): Json;
}

export function merge(before: Json, mine: Json, theirs: Json): Merge {
  const taken: Difference[] = [];
  const conflicts: Difference[] = [];
  compare({ path: [], before, mine, theirs }, taken, conflicts);
  const resolve = (chosen: ReadonlySet<Difference>): Json => {
    let result = mine;
    for (const difference of taken) result = put(result, difference.path, difference.theirs);
    for (const difference of conflicts)
      if (chosen.has(difference)) result = put(result, difference.path, difference.theirs);
    return result;
  };
  return { taken, conflicts, resolve };
}

function compare(difference: Difference, taken: Difference[], conflicts: Difference[]): void {
  const { path, before, mine, theirs } = difference;
  if (isSame(mine, theirs) || isSame(before, theirs)) return;
  if (isMap(before) && isMap(mine) && isMap(theirs)) {
    for (const key of new Set([before, mine, theirs].flatMap((map) => Object.keys(map))))
      compare(
        { path: [...path, key], before: before[key], mine: mine[key], theirs: theirs[key] },
        taken,
        conflicts,
      );
    return;
  }
  (isSame(before, mine) ? taken : conflicts).push(difference);
}

/** Keeps the order of the keys that were there. */
function put(value: Json, path: readonly string[], leaf: Json | undefined): Json {
  const [key, ...rest] = path;
  if (key === undefined) return leaf ?? null;
  const map = isMap(value) ? value : {};
  const inner = rest.length === 0 ? leaf : put(map[key] ?? {}, rest, leaf);
  if (inner !== undefined) return { ...map, [key]: inner };
  const { [key]: _, ...others } = map;
  return others;
}

export function isSame(a: Json | undefined, b: Json | undefined): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item: Json, at) => isSame(item, b[at] as Json));
  if (!isMap(a) || !isMap(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => isSame(a[key], b[key]));
}

function isMap(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
