/**
 * The state file was opened anew after what had it open has failed. What was acknowledged must be in it; a change that
 * was under way is in it or not, and what the file says is put in force.
 */
import { StoreError } from "#core/errors.ts";
import type { Changes, Shared, Step } from "./changes.ts";
import type { StoredState } from "./records.ts";
import { remarksJson } from "./remarks.ts";
import { limitsJson } from "./stored-limits.ts";
import { UNKNOWN_ID, type UserBook, type UserRecord } from "./user-book.ts";

/**
 * No change may run meanwhile. Rejects with `StoreError` and nothing changed where the file lacks an acknowledged change,
 * and with the error of a listener that refuses its users; then management ends.
 */
export async function reconcileWith(
  state: StoredState,
  { env, registry }: Shared,
  changes: Changes,
): Promise<void> {
  for (const known of registry.books.values())
    if (known.id !== UNKNOWN_ID) refuseContradiction(known, state.books.get(known.listener));
  for (const [name, stored] of state.books) {
    const known = registry.books.get(name);
    const listener = registry.listeners.get(name);
    if (known === undefined || listener === undefined) {
      registry.rest(stored, state.traffic);
      continue;
    }
    if (stored.revision === known.revision) continue;
    env.log.warning(
      `listener ${name}: a change that was answered with an error is in the state file and in force`,
    );
    const steps = stepsTo(known, stored, state);
    for (const step of steps) await changes.adopt({ book: known, listener }, stored, step);
    if (steps.length === 0) registry.books.set(name, { ...known, ...revisionsOf(stored) });
  }
}

function refuseContradiction(known: UserBook, stored: UserBook | undefined): void {
  const { listener, revision } = known;
  if (stored === undefined || stored.id !== known.id || stored.protocol !== known.protocol)
    throw new StoreError(`listener ${listener} is not in it`);
  if (stored.revision < revision)
    throw new StoreError(`listener ${listener} has revision ${stored.revision}, not ${revision}`);
  if (stored.revision === revision && differing(known, stored).length > 0)
    throw new StoreError(`listener ${listener} has other users at revision ${revision}`);
}

function stepsTo(known: UserBook, stored: UserBook, { traffic }: StoredState): readonly Step[] {
  return differing(known, stored).map((id): Step => {
    const before = known.users.get(id) ?? null;
    const after = stored.users.get(id) ?? null;
    const counted = traffic.get(id);
    // A user who was there and was not reset has been counted since.
    const isFresh = after !== null && after.trafficGeneration !== before?.trafficGeneration;
    return { before, after, ...(isFresh && counted !== undefined ? { traffic: counted } : {}) };
  });
}

/** Ids of the users who differ between the two. */
export function differing({ users: before }: UserBook, { users: after }: UserBook): readonly string[] {
  const ids = new Set([...before.keys(), ...after.keys()]);
  return [...ids].filter((id) => textOf(before.get(id)) !== textOf(after.get(id)));
}

function textOf(user: UserRecord | undefined): string {
  if (user === undefined) return "";
  const { id, name, credential, flow, enabled, trafficGeneration, createdAtMs, updatedAtMs, token } = user;
  const plain = [id, name, credential, flow, enabled, trafficGeneration, createdAtMs, updatedAtMs, token];
  return JSON.stringify([plain, limitsJson(user.limits, null), remarksJson(user.remarks)]);
}

function revisionsOf({ revision, appliedRevision }: UserBook) {
  return { revision, appliedRevision };
}
