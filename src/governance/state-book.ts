/** The states of all policies, and what becomes of them when the policies change. */
import type { Policy } from "#core/policy.ts";
import type { SteadyTime } from "#lib/steady-time.ts";
import { valueAt } from "#lib/at.ts";
import type { BookEntry } from "./policy-book.ts";
import { PolicyState } from "./policy-state.ts";

/** `<dimension>:<id>` of a series key → what it is called from now on. */
export type Renames = ReadonlyMap<string, string>;

export class StateBook {
  readonly #states = new Map<string, PolicyState>();
  /** Keys that the store still has and that are gone here. */
  readonly #gone = new Set<string>();

  /** What all windows are measured by. */
  readonly time: SteadyTime;

  constructor(time: SteadyTime, states: Iterable<PolicyState> = []) {
    this.time = time;
    for (const state of states) this.#states.set(state.key, state);
  }

  get(key: string): PolicyState | null {
    return this.#states.get(key) ?? null;
  }

  /** The state of a policy that `reconcile` was given. */
  of({ id }: Policy): PolicyState {
    return valueAt(this.#states, id);
  }

  all(): Iterable<PolicyState> {
    return this.#states.values();
  }

  get gone(): ReadonlySet<string> {
    return this.#gone;
  }

  forgetGone(keys: Iterable<string>): void {
    for (const key of keys) this.#gone.delete(key);
  }

  /**
   * Gives every policy its state. Equal id and identity: the state continues. Equal identity under another id: history
   * moves. Another identity or another window: a new generation, the old one is kept as `<id>@<generation>`.
   */
  reconcile(entries: readonly BookEntry[], nowSeconds: number): Renames {
    const renames = new Map<string, string>();
    const pending = entries.filter(
      ({ policy }) => this.#states.get(policy.id)?.identity !== identityOf(policy),
    );
    const staying = new Set(
      entries.filter((entry) => !pending.includes(entry)).map(({ policy }) => policy.id),
    );
    const homeless = this.#homeless(staying, entries);
    const moves = pending.map(({ policy }) => [policy, homeless.get(identityOf(policy)) ?? null] as const);
    const moving = new Set(moves.map(([, state]) => state));
    const displaced = new Map<string, number>();
    for (const [{ id }] of moves) {
      const there = this.#states.get(id);
      if (there === undefined) continue;
      displaced.set(id, there.generation);
      if (!moving.has(there)) this.#archive(there, renames);
    }
    for (const [, state] of moves) if (state !== null) this.#remove(state.key);
    for (const [policy, state] of moves) {
      if (state === null)
        this.#put(PolicyState.of(keyed(policy), (displaced.get(policy.id) ?? 0) + 1, nowSeconds, this.time));
      else this.#move(state, policy, renames);
    }
    for (const { policy } of entries) this.#renew(policy, nowSeconds, renames);
    return renames;
  }

  /** By identity: states of no configured policy, not archived ones. */
  #homeless(staying: ReadonlySet<string>, entries: readonly BookEntry[]): ReadonlyMap<string, PolicyState> {
    const wanted = new Set(entries.map(({ policy }) => identityOf(policy)));
    const found = new Map<string, PolicyState>();
    for (const state of this.#states.values())
      if (!state.key.includes("@") && !staying.has(state.key) && wanted.has(state.identity))
        found.set(state.identity, state);
    return found;
  }

  /** A window of another length starts a new generation; then the limits in force are set. */
  #renew(policy: Policy, nowSeconds: number, renames: Map<string, string>): void {
    let state = this.of(policy);
    const { quota } = policy;
    if (quota !== null && state.window !== null && state.window.windowSeconds !== quota.windowSeconds) {
      const { generation } = state;
      this.#archive(state, renames);
      state = PolicyState.of(keyed(policy), generation + 1, nowSeconds, this.time);
      this.#put(state);
    }
    state.lastSeen = nowSeconds;
    state.touch();
    state.setLimits(quota);
  }

  #archive(state: PolicyState, renames: Map<string, string>): void {
    const key = `${state.key}@${state.generation}`;
    this.#rename(state, key, renames);
    state.limits = null;
    state.overQuota = false;
  }

  #move(state: PolicyState, { id }: Policy, renames: Map<string, string>): void {
    renames.set(`${state.dimension}:${state.key}`, `${state.dimension}:${id}`);
    state.key = id;
    this.#put(state);
  }

  #rename(state: PolicyState, key: string, renames: Map<string, string>): void {
    renames.set(`${state.dimension}:${state.key}`, `${state.dimension}:${key}`);
    this.#remove(state.key);
    state.key = key;
    this.#put(state);
  }

  #put(state: PolicyState): void {
    state.touch();
    this.#states.set(state.key, state);
    this.#gone.delete(state.key);
  }

  #remove(key: string): void {
    this.#states.delete(key);
    this.#gone.add(key);
  }

  /** Goes on from a book that was read later than this one began: what both have counted is added up. */
  takeIn(older: StateBook): void {
    for (const key of older.gone) this.#gone.add(key);
    for (const state of older.all()) {
      const own = this.#states.get(state.key);
      if (own === undefined) this.#put(state);
      else own.takeIn(state);
      this.#gone.delete(state.key);
    }
  }

  /** Drops states of policies that are gone and quiet since `border`; those that are configured stay, however idle. */
  dropOrphans(configured: ReadonlySet<string>, borderSeconds: number): void {
    for (const state of this.#states.values()) {
      if (configured.has(state.key)) continue;
      if (Math.max(state.lastSeen, state.lastUpdated) < borderSeconds) this.#remove(state.key);
    }
  }
}

/** Policies of two dimensions never share a history. */
function identityOf({ dimension, identity }: Policy): string {
  return `${dimension} ${identity}`;
}

function keyed(policy: Policy): Policy {
  return { ...policy, identity: identityOf(policy) };
}
