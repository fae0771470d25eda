import { PassingMap } from "#lib/passing-map.ts";

interface Row<Item> {
  readonly item: Item;
  /** As it was when the item got its place. */
  usedAtMs: number;
  /** False: its place is behind those that were sorted, no more. */
  isSorted: boolean;
}

/**
 * Items by their last use, which is looked at only when the one that has been silent longest is asked for: using an item
 * costs nothing here, and of many questions about many items few cost a sort.
 */
export class SilenceLine<Item extends { readonly usedAtMs: number }> {
  #rows = new PassingMap<Item, Row<Item>>();

  get size(): number {
    return this.#rows.size;
  }

  /** One that is not in it. */
  add(item: Item): void {
    this.#rows.set(item, { item, usedAtMs: item.usedAtMs, isSorted: false });
  }

  delete(item: Item): boolean {
    return this.#rows.delete(item);
  }

  /** Null: there is none. */
  longestSilent(): Item | null {
    for (const row of this.#rows.values()) {
      const { item, usedAtMs, isSorted } = row;
      if (!isSorted) break;
      if (item.usedAtMs <= usedAtMs) return item;
      row.isSorted = false; // used since, and so later than all that are sorted
      this.#rows.delete(item);
      this.#rows.set(item, row);
    }
    return this.#sort();
  }

  #sort(): Item | null {
    const rows = [...this.#rows.values()];
    for (const row of rows) row.usedAtMs = row.item.usedAtMs;
    rows.sort((one, other) => one.usedAtMs - other.usedAtMs);
    this.#rows = new PassingMap();
    for (const row of rows) {
      row.isSorted = true;
      this.#rows.set(row.item, row);
    }
    return rows[0]?.item ?? null;
  }
}
