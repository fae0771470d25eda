/** Histories as the state file has them: a row for each user with a closed hour, named by the user's id. */
import { StoreError } from "#core/errors.ts";
import type { Change } from "#store/kv.ts";
import { type StoredHistory, type StoredHour, UserHistory } from "./history.ts";
import type { RemovedHistory } from "./removed-histories.ts";

/** Closed hours and days of what users moved. */
export const HISTORY = "history";

interface StoredRow extends StoredHistory {
  /** Of a user who has been removed: when, in Unix ms, and from which listener. */
  readonly removed_at?: number;
  readonly inbound?: string;
}

export function historyChange(id: string, { closed: { hours, days } }: UserHistory): Change {
  return change(id, { hours, days });
}

/** The row of a user who goes. */
export function removedChange(id: string, { listener, removedAtMs, history }: RemovedHistory): Change {
  return change(id, { ...history.whole(), removed_at: Math.trunc(removedAtMs), inbound: listener });
}

function change(id: string, stored: StoredRow): Change {
  return { part: HISTORY, key: id, value: Buffer.from(JSON.stringify(stored)) };
}

export interface StoredHistories {
  /** Closed hours and days of users who are there. */
  readonly present: ReadonlyMap<string, StoredHistory>;
  readonly removed: ReadonlyMap<string, RemovedHistory>;
  /** Rows that belong to no user; a fleet has removed them, which keeps no histories. */
  readonly stray: readonly string[];
}

/** `isUser`: the user is there. Throws `StoreError` where a row contradicts itself. */
export function decodeHistories(
  rows: Iterable<readonly [key: string, value: Buffer]>,
  isUser: (id: string) => boolean,
): StoredHistories {
  const present = new Map<string, StoredHistory>();
  const removed = new Map<string, RemovedHistory>();
  const stray: string[] = [];
  for (const [id, value] of rows) {
    const {
      hours,
      days,
      removed_at: removedAtMs,
      inbound: listener = "",
    }: StoredRow = JSON.parse(value.toString());
    if (![hours, days].every(isBuckets))
      throw new StoreError(`history of user ${id}: the record contradicts itself`);
    const stored = { hours, days };
    if (isUser(id)) present.set(id, stored);
    else if (removedAtMs === undefined) stray.push(id);
    else removed.set(id, { listener, removedAtMs, history: new UserHistory(stored) });
  }
  return { present, removed, stray };
}

function isBuckets(numbers: readonly number[]): boolean {
  return Array.isArray(numbers) && numbers.length % 3 === 0 && numbers.every(isCount);
}

function isCount(number: number): boolean {
  return Number.isSafeInteger(number) && number >= 0;
}

/** Of a user's record and row; null: there is none. Throws `StoreError`. */
export function historyOf(
  id: string,
  stored: StoredHistory | undefined,
  hour: StoredHour | undefined,
): UserHistory | null {
  if (stored === undefined && hour === undefined) return null;
  if (hour !== undefined && !(isBuckets(hour) && hour.length === 3))
    throw new StoreError(`state of user ${id}: the hour contradicts itself`);
  return new UserHistory(stored, hour);
}
