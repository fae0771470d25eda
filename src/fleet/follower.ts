/** Puts in force on this node what others have changed, in the queues in which changes of its own run. */
import type { Client, ClientBase } from "pg";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { UserSupport } from "#core/protocol.ts";
import { differing } from "#users/agreement.ts";
import type { Changes, Shared, Step } from "#users/changes.ts";
import { NO_TRAFFIC } from "#users/counters.ts";
import type { StateRepository } from "#users/state-repository.ts";
import { UNKNOWN_ID, type UserBook } from "#users/user-book.ts";
import { PersistentMap } from "#lib/persistent-map.ts";
import { ContentError } from "./errors.ts";
import { fittingUsers } from "./fitting-users.ts";
import { type FleetListener, listenerSince, wholeListener } from "./listeners.ts";
import type { TokenSeal } from "./seal.ts";
import type { Snapshot } from "./snapshot.ts";

/** What can be asked: a connection, or one that is made when it is needed. */
export type Asking = <T>(work: (client: Client) => Promise<T>) => Promise<T>;

export interface FollowerEnv {
  readonly shared: Shared;
  readonly changes: Changes;
  readonly local: StateRepository;
  readonly snapshot: Snapshot;
  readonly seal: TokenSeal;
  /** The revision of a listener in force here has grown; `isWhole`: its users may have come with totals of their own. */
  readonly onApplied: (isWhole: boolean) => void;
}

export class Follower {
  readonly #env: FollowerEnv;
  /** By listener, what it was left out for last. */
  readonly #said = new Map<string, string>();

  constructor(env: FollowerEnv) {
    this.#env = env;
  }

  bookOf(tag: string): UserBook | undefined {
    return this.#env.shared.registry.books.get(tag);
  }

  /** All managed listeners, each in its queue. Rejects as the database does. */
  async followAll(ask: Asking): Promise<void> {
    const { queues, registry } = this.#env.shared;
    for (const tag of registry.listeners.keys()) {
      const news = await this.#fetch(tag, ask).catch((error: unknown) => this.#leaveOut(tag, error));
      if (news !== null) await queues.on(tag, () => this.#take(tag, news));
    }
  }

  /** It stays as it is known here. Throws what concerns more than this listener. */
  #leaveOut(tag: string, error: unknown): null {
    if (!(error instanceof ContentError)) throw error;
    if (this.#said.get(tag) !== error.message)
      this.#env.shared.env.log.error(`fleet: listener ${tag} stays as it is known here: ${error.message}`);
    this.#said.set(tag, error.message);
    return null;
  }

  /** One listener, in whose queue the caller is. Rejects as the database does. */
  async follow(tag: string, ask: Asking): Promise<void> {
    const news = await this.#fetch(tag, ask);
    if (news !== null) await this.#take(tag, news);
  }

  /** Null: there is nothing new. */
  async #fetch(tag: string, ask: Asking): Promise<Fetched | null> {
    const { shared, seal } = this.#env;
    const known = shared.registry.books.get(tag);
    if (known === undefined) return null;
    const listener = await ask((client) => fetchListener(client, known, seal));
    if (listener === null) return null; // not there yet, or hidden from this login
    if (listener.id !== known.id && known.id !== UNKNOWN_ID) {
      shared.env.log.error(`fleet: ${otherListener(tag)}`);
      return null;
    }
    return listener.revision === known.revision && listener.id === known.id ? null : { known, listener };
  }

  async #take(tag: string, { known, listener: fetched }: Fetched): Promise<void> {
    const { shared, changes, snapshot, onApplied } = this.#env;
    const { registry, env, isOver } = shared;
    const book = registry.books.get(tag);
    const listener = registry.listeners.get(tag);
    if (book === undefined || listener === undefined || isOver()) return;
    // What was fetched whole is compared with what was known then; if that has changed, the next round fetches again.
    if (fetched.isWhole ? book !== known : fetched.revision <= book.revision) return;
    if (fetched.revision < book.revision)
      env.log.warning(
        `fleet: the database has listener ${tag} at an earlier revision than this node (was it restored?); it is in force`,
      );
    const next = nextBook(book, fetched, { support: listener.support, log: env.log });
    const ids = fetched.isWhole ? differing(book, next) : [...fetched.users.keys()];
    const steps = ids.flatMap((id) => stepOf(book, next, id));
    await snapshot.write(next, steps);
    if (isOver()) return;
    try {
      changes.adoptAll({ book, listener }, next, steps);
    } catch (error) {
      env.log.error(`fleet: listener ${tag}: its new users are not in force: ${messageOf(error)}`);
      env.onFailure(error); // a user who was removed elsewhere must not stay connected
    }
    onApplied(fetched.isWhole);
  }
}

interface Fetched {
  /** What was known when it was asked for. */
  readonly known: UserBook;
  readonly listener: FleetListener;
}

/** What has changed since a book, or all where that cannot be told; null: the fleet has no such listener for this login. */
export async function fetchListener(
  client: ClientBase,
  { id, listener, revision }: UserBook,
  seal: TokenSeal,
): Promise<FleetListener | null> {
  const changed = id === UNKNOWN_ID ? null : await listenerSince(client, listener, revision, seal);
  return changed ?? (await wholeListener(client, listener, seal));
}

export function otherListener(tag: string): string {
  return `the fleet has another listener ${tag} than this state file; its users are not mixed (weir fleet import moves users)`;
}

/** Users who cannot be served are left out of it, and named in the log. */
export function nextBook(
  book: UserBook,
  fetched: FleetListener,
  { support, log }: { readonly support: UserSupport; readonly log: Log },
): UserBook {
  const { id, protocol, revision, isWhole } = fetched;
  const { users, index, faults } = fittingUsers(book, fetched, support);
  for (const fault of [...fetched.faults, ...faults])
    log.error(`fleet: listener ${book.listener}: ${fault}; this user is not served`);
  const base = { id, listener: book.listener, protocol, revision, appliedRevision: revision, index };
  return { ...base, users: PersistentMap.from(isWhole ? [] : book.users).with(users) };
}

function stepOf(book: UserBook, next: UserBook, id: string): readonly Step[] {
  const before = book.users.get(id) ?? null;
  const after = next.users.get(id) ?? null;
  if (before === null && after === null) return []; // came and went in between
  const isFresh = after !== null && after.trafficGeneration !== before?.trafficGeneration;
  return [{ before, after, ...(isFresh ? { traffic: NO_TRAFFIC } : {}) }];
}
