/** Orders of tables: by each of their columns, either way. */

export interface Order {
  /** Of the column, from 0. */
  readonly by: number;
  readonly isDown: boolean;
}

/** What rows are compared by. Null: a row has no such thing, and comes last either way. */
export type SortKey<T> = (item: T) => string | number | null;

/** One for all: making it takes longer than a thousand comparisons. */
const collator = new Intl.Collator(undefined, { numeric: true });

/** `keys` null: there is no order by this column. Rows that are alike stay in the order that they have. */
export function sorted<T>(
  items: readonly T[],
  keys: readonly (SortKey<T> | null)[],
  order: Order | null,
): readonly T[] {
  const key = order === null ? null : (keys[order.by] ?? null);
  if (key === null) return items;
  const sign = order?.isDown === true ? -1 : 1;
  return items
    .map((item) => ({ key: key(item), item }))
    .sort((a, b) => compare(a.key, b.key, sign))
    .map(({ item }) => item);
}

function compare(a: string | number | null, b: string | number | null, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * collator.compare(String(a), String(b));
}

/** A press on the head of a column: up, down, as they are listed. */
export function nextOrder(before: Order | null, column: number): Order | null {
  if (before?.by !== column) return { by: column, isDown: false };
  return before.isDown ? null : { by: column, isDown: true };
}

/** Of a time as text; what was never is null. */
export function timeKey(text: string | undefined): number | null {
  const atMs = Date.parse(text ?? "");
  return Number.isNaN(atMs) || atMs <= 0 ? null : atMs;
}
