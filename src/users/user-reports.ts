/** From changes of users to events. */
import type { EventUser, UserEvents } from "#core/events.ts";
import { limitsJson } from "./stored-limits.ts";
import type { UserBook, UserRecord } from "./user-book.ts";
import { barOf, type Found, type UserRegistry } from "./user-registry.ts";

export function eventUser({ book, user }: Pick<Found, "book" | "user">): EventUser {
  return { id: user.id, name: user.name, listener: book.listener };
}

/** `before` null: created; `after` null: deleted. */
export function reportChange(
  book: UserBook,
  before: UserRecord | null,
  after: UserRecord | null,
  events: UserEvents,
): void {
  if (after === null) {
    if (before !== null) events.deleted(eventUser({ book, user: before }));
    return;
  }
  const user = eventUser({ book, user: after });
  if (before === null) return events.created(user);
  const changed = differing(before, after);
  if (changed.length > 0) events.changed(user, changed);
  if (before.enabled !== after.enabled) events.enabled(user, after.enabled);
}

function differing(before: UserRecord, after: UserRecord): readonly string[] {
  const limits = (user: UserRecord) => JSON.stringify(limitsJson(user.limits, null));
  const labels = (user: UserRecord) => user.remarks.labels.join("\n");
  return [
    ...(["name", "credential", "flow"] as const).filter((key) => before[key] !== after[key]),
    ...(before.token === after.token ? [] : ["subscription"]),
    ...(before.trafficGeneration === after.trafficGeneration ? [] : ["traffic"]),
    ...(limits(before) === limits(after) ? [] : ["limits"]),
    ...(before.remarks.note === after.remarks.note ? [] : ["note"]),
    ...(labels(before) === labels(after) ? [] : ["labels"]),
  ];
}

/** Says of every user with limits whether it is past one; what was said before is not said again. */
export function reportBars(
  registry: UserRegistry,
  all: Iterable<UserBook>,
  nowMs: number,
  events: UserEvents,
): void {
  const byName = new Map(Array.from(all, (book) => [book.listener, book]));
  for (const counter of registry.counters.limited) {
    const book = byName.get(counter.listener);
    const user = book?.users.get(counter.id);
    if (book !== undefined && user !== undefined)
      events.limited(eventUser({ book, user }), barOf(counter, nowMs));
  }
}
