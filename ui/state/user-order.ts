/** What the table of users is ordered by: each of its columns. */
import type { ManagedUser } from "#ui/api/admin-types.ts";
import type { SortKey } from "./sorted.ts";

const stateOf = ({ status, enabled }: ManagedUser): string => status ?? (enabled ? "active" : "disabled");

/** Of the columns, in their order. Users without a quota or an end come last. */
export const USER_KEYS: readonly SortKey<ManagedUser>[] = [
  ({ name }) => name,
  stateOf,
  ({ inbound }) => inbound,
  ({ quota }) => (quota === undefined ? null : quota.used_bytes / quota.total_bytes),
  ({ expires_at: end }) => end ?? null,
  ({ download_bytes: bytes }) => bytes,
  ({ upload_bytes: bytes }) => bytes,
  ({ active_connections: count }) => count,
];
