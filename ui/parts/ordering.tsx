/** Orders that a person chooses: by the heads of a table's columns, or from a list where there are no heads. */
import { useMemo, useState } from "preact/hooks";
import { useEnvironment, useWords } from "#ui/state/context.ts";
import { nextOrder, sorted, type Order, type SortKey } from "#ui/state/sorted.ts";
import { Select } from "./inputs.tsx";

export interface Column<T> {
  readonly name: string;
  /** Null: there is no order by it. */
  readonly key: SortKey<T> | null;
}

export interface Ordering {
  readonly order: Order | null;
  readonly columns: readonly { readonly name: string; readonly isOrderable: boolean }[];
  set(order: Order | null): void;
  press(column: number): void;
}

/** The items in the order that was chosen for this table last, as long as the page is open. */
export function useOrdering<T>(
  table: string,
  items: readonly T[],
  columns: readonly Column<T>[],
): { readonly shown: readonly T[]; readonly ordering: Ordering } {
  const { orders } = useEnvironment();
  const [order, setOrder] = useState<Order | null>(() => orders.get(table) ?? null);
  const shown = useMemo(
    () =>
      sorted(
        items,
        columns.map(({ key }) => key),
        order,
      ),
    [items, order],
  );
  const set = (next: Order | null): void => {
    orders.set(table, next);
    setOrder(next);
  };
  const ordering: Ordering = {
    order,
    columns: columns.map(({ name, key }) => ({ name, isOrderable: key !== null })),
    set,
    press: (column) => set(nextOrder(order, column)),
  };
  return { shown, ordering };
}

/** For lists without heads, and for narrow pages. */
export function OrderSelect({ ordering: { order, columns, set } }: { readonly ordering: Ordering }) {
  const { t } = useWords();
  const options = columns.flatMap(({ name, isOrderable }, at) =>
    isOrderable
      ? ([[`${at} up`, `${name} ↑`] as const, [`${at} down`, `${name} ↓`] as const] as const) // prettier-ignore
      : [],
  );
  return (
    <div class="order">
      <Select
        label={t("common.order")}
        value={order === null ? "" : `${order.by} ${order.isDown ? "down" : "up"}`}
        options={[["", t("common.asListed")], ...options]}
        onChange={(value) => {
          const [by = "", way] = value.split(" ");
          set(by === "" ? null : { by: Number(by), isDown: way === "down" });
        }}
      />
    </div>
  );
}

interface HeadProps {
  readonly ordering: Ordering;
  /** Of the column, from 0. */
  readonly at: number;
}

/** What `aria-sort` says of a column; absent: there is no order by it. */
export function sortState({ ordering: { order, columns }, at }: HeadProps) {
  if (columns[at]?.isOrderable !== true) return undefined;
  if (order?.by !== at) return "none";
  return order.isDown ? "descending" : "ascending";
}

/** The name of a column, as a button where there is an order by it. */
export function HeadText({ ordering, at }: HeadProps) {
  const state = sortState({ ordering, at });
  const name = ordering.columns[at]?.name ?? "";
  if (state === undefined) return <>{name}</>;
  return (
    <button type="button" class="head-button" onClick={() => ordering.press(at)}>
      {name}
      <span aria-hidden="true">{state === "none" ? "" : state === "descending" ? " ↓" : " ↑"}</span>
    </button>
  );
}

/** The head of a `table`; `numbers`: columns that stand at the end of their cells. */
export function TableHead({
  ordering,
  numbers,
}: {
  readonly ordering: Ordering;
  readonly numbers: readonly number[];
}) {
  return (
    <thead>
      <tr>
        {ordering.columns.map(({ name }, at) => (
          <th
            key={name}
            scope="col"
            class={numbers.includes(at) ? "number" : undefined}
            aria-sort={sortState({ ordering, at })}
          >
            <HeadText ordering={ordering} at={at} />
          </th>
        ))}
      </tr>
    </thead>
  );
}
