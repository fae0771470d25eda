/** Orders of the table of users: by each of its columns, either way. */
import type { ManagedUser } from "#ui/api/admin-types.ts";

export interface Order {
  /** Of the column, from 0. */
  readonly by: number;
  readonly isDown: boolean;
}

type Compare = (a: ManagedUser, b: ManagedUser) => number;

const collator = new Intl.Collator(undefined, { numeric: true });
const stateOf = ({ status, enabled }: ManagedUser): string => status ?? (enabled ? "active" : "disabled");
const by =
  (value: (user: ManagedUser) => number): Compare =>
  (a, b) =>
    value(a) - value(b);

/** Of the columns, in their order. Users without an end come behind those with one. */
const COMPARE: readonly Compare[] = [
  (a, b) => collator.compare(a.name, b.name),
  (a, b) => collator.compare(stateOf(a), stateOf(b)),
  (a, b) => collator.compare(a.inbound, b.inbound),
  by(({ quota }) => (quota === undefined ? -1 : quota.used_bytes / quota.total_bytes)),
  by(({ expires_at: end }) => end ?? Number.MAX_SAFE_INTEGER),
  by(({ download_bytes: bytes }) => bytes),
  by(({ upload_bytes: bytes }) => bytes),
  by(({ active_connections: count }) => count),
];

export function ordered(users: readonly ManagedUser[], order: Order | null): readonly ManagedUser[] {
  const compare = order === null ? undefined : COMPARE[order.by];
  if (compare === undefined) return users;
  const sorted = users.toSorted(compare);
  return order?.isDown === true ? sorted.reverse() : sorted;
}

/** A press on the head of a column: up, down, as the program lists them. */
export function nextOrder(before: Order | null, column: number): Order | null {
  if (before?.by !== column) return { by: column, isDown: false };
  return before.isDown ? null : { by: column, isDown: true };
}
