/** Users of a fleet: a change is one transaction of the database, then it is in the snapshot of this node. */
import { DatabaseError } from "pg";
import { ApiError } from "#core/errors.ts";
import type { Change } from "#store/kv.ts";
import type { Traffic, UserCounter } from "#users/counters.ts";
import type { StateRepository } from "#users/state-repository.ts";
import { nextRevision, UNKNOWN_ID, type UserBook, type UserRecord } from "#users/user-book.ts";
import type { ChangeKind, UserRepository } from "#users/user-repository.ts";
import { reasonOf } from "./errors.ts";
import { type FleetConnection, UnansweredError } from "./fleet-connection.ts";
import type { Follower } from "./follower.ts";
import { userJson } from "./rows.ts";
import type { TokenSeal } from "./seal.ts";
import type { Snapshot } from "./snapshot.ts";

export interface FleetRepositoryEnv {
  readonly local: StateRepository;
  readonly snapshot: Snapshot;
  readonly seal: TokenSeal;
  readonly connection: FleetConnection;
  readonly follower: () => Follower;
  /** Why the database is away; null: it is there. */
  readonly awayBecause: () => string | null;
  readonly nowMs: () => number;
  readonly node: string;
  /** A change of this node is in the database. */
  readonly onChanged: () => void;
}

interface Committed {
  readonly done: boolean;
  readonly present: string | null;
}

export class FleetRepository implements UserRepository {
  readonly #env: FleetRepositoryEnv;

  constructor(env: FleetRepositoryEnv) {
    this.#env = env;
  }

  async refresh(listener: string | null, revision: number | null): Promise<void> {
    const { connection, follower } = this.#env;
    this.#refuseAway();
    const book = listener === null ? undefined : follower().bookOf(listener);
    // The database compares the revision again when it commits: asking for it before is a round trip more in every change.
    if (book !== undefined && book.id !== UNKNOWN_ID && book.revision === revision) return;
    const ask: Parameters<Follower["followAll"]>[0] = (work) => connection.run(work);
    try {
      await (listener === null ? follower().followAll(ask) : follower().follow(listener, ask));
    } catch (error) {
      throw answerFor(error);
    }
  }

  async keep(
    book: UserBook,
    id: string,
    user: UserRecord | null,
    traffic: Traffic,
    kind: ChangeKind,
  ): Promise<void> {
    const { snapshot, onChanged } = this.#env;
    const before = this.#bookBefore(book);
    try {
      await this.#commit(book, { expected: before.revision, id, user, kind });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      await this.refresh(book.listener, null); // others were quicker: who is refused reads the users again, from here
      const isGone = before.users.has(id) && !this.#bookBefore(book).users.has(id);
      throw isGone ? new ApiError(404, "user not found") : error;
    }
    onChanged();
    await snapshot.write(book, [{ before: before.users.get(id) ?? null, after: user, traffic }]);
  }

  async takeBack(
    kept: UserBook,
    book: UserBook,
    id: string,
    user: UserRecord | null,
    traffic: Traffic,
  ): Promise<UserBook> {
    const revision = nextRevision(kept.revision, this.#env.nowMs());
    const next = { ...book, revision, appliedRevision: revision };
    await this.#commit(next, { expected: kept.revision, id, user, kind: "update" });
    await this.#env.snapshot.write(next, [{ before: kept.users.get(id) ?? null, after: user, traffic }]);
    return next;
  }

  keepAll(changes: readonly Change[]): Promise<void> {
    return this.#env.local.keepAll(changes);
  }

  save(counters: readonly UserCounter[], options: { readonly backup: boolean }): Promise<boolean> {
    return this.#env.local.save(counters, options);
  }

  saveLast(counters: readonly UserCounter[]): Promise<void> {
    return this.#env.local.saveLast(counters);
  }

  close(): Promise<void> {
    return this.#env.local.close();
  }

  closeNow(): void {
    this.#env.local.closeNow();
  }

  #bookBefore({ listener }: UserBook): UserBook {
    const book = this.#env.follower().bookOf(listener);
    if (book === undefined || book.id === UNKNOWN_ID)
      throw new ApiError(503, `listener ${listener}: its users have not come from the fleet's database yet`);
    return book;
  }

  async #commit(
    { listener, revision }: UserBook,
    { expected, id, user, kind }: { expected: number; id: string; user: UserRecord | null; kind: ChangeKind },
  ): Promise<void> {
    const { connection, seal, node } = this.#env;
    this.#refuseAway();
    const record = user === null ? null : JSON.stringify(userJson(user, seal));
    let rows: readonly Committed[];
    try {
      rows = await connection.query<Committed>(
        "SELECT done, present FROM weir.commit_change($1, $2, $3, $4, $5, $6, $7)",
        [listener, expected, revision, id, kind, record, node],
      );
    } catch (error) {
      throw answerFor(error, "the change is in force soon, or was not made");
    }
    const [answer] = rows;
    if (answer?.done === true) return;
    const present = answer?.present ?? null;
    if (present === null) throw new ApiError(404, "inbound not found or not managed");
    throw new ApiError(
      409,
      `listener ${listener}: expected revision ${expected}, the current revision is ${present}`,
    );
  }

  #refuseAway(): void {
    const reason = this.#env.awayBecause();
    if (reason !== null) throw away(`${reason}; nothing was changed`);
  }
}

/** When a client that met the database away may ask again. */
const RETRY_SECONDS = 2;

export function away(why: string): ApiError {
  return new ApiError(503, `the fleet's database is away: ${why}`, { retryAfterSeconds: RETRY_SECONDS });
}

/** SQLSTATE: PostgreSQL's documentation, appendix A. */
const FORBIDDEN = "42501";
const PASSING = /^(08|25006|40|53|55P03|57|58)/;

/** What the client is told. `unanswered` is said where the connection was lost before the answer came. */
export function answerFor(cause: unknown, unanswered = "nothing was changed"): unknown {
  if (cause instanceof ApiError) return cause;
  if (cause instanceof UnansweredError) return away(`${cause.message}; ${unanswered}`);
  if (!(cause instanceof DatabaseError)) return away(`${reasonOf(cause)}; nothing was changed`);
  const { code = "", message } = cause;
  if (code === FORBIDDEN) return new ApiError(403, `${message}; weir fleet allow -writes gives the right`);
  return PASSING.test(code) ? away(`${reasonOf(cause)}; nothing was changed`) : cause;
}
