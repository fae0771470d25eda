/** The users of one listener at one revision. Immutable: a change is a new book, checked whole before it is published. */
import { ApiError } from "#core/errors.ts";
import type { ManagedInbound, User } from "#core/inbound.ts";
import { PersistentMap } from "#lib/persistent-map.ts";
import type { UserSupport } from "#core/protocol.ts";
import type { UserChange, UserDraft, UserLimits, UserRemarks } from "#core/users.ts";
import { changedLimits, NO_LIMITS } from "./limits.ts";
import { changedRemarks, NO_REMARKS } from "./remarks.ts";
import { BookIndex } from "./book-index.ts";

export interface UserRecord {
  /** UUID; never changes. The listener knows the user by it, so that renaming ends no session. */
  readonly id: string;
  readonly name: string;
  readonly credential: string;
  readonly flow: string;
  readonly enabled: boolean;
  /** Grows when the counters are set back. */
  readonly trafficGeneration: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** 32 random bytes in unpadded base64url. */
  readonly token: string;
  readonly limits: UserLimits;
  readonly remarks: UserRemarks;
}

export interface UserBook {
  /** Stays when the listener is managed again later. */
  readonly id: string;
  readonly listener: string;
  /** Type of the listener. */
  readonly protocol: string;
  readonly revision: number;
  readonly appliedRevision: number;
  readonly users: ReadonlyMap<string, UserRecord>;
  /** Made at the first change. */
  readonly index?: BookIndex;
}

/** The id of a book that stands for users of a fleet that this node has never seen; it is not kept. */
export const UNKNOWN_ID = "";

const MAX_NAME_BYTES = 256;

/** Milliseconds since 1970, and always more than before. */
export function nextRevision(before: number, nowMs: number): number {
  return Math.max(Math.trunc(nowMs), before + 1);
}

/** Throws `ApiError` 409 unless the caller looked at the present revision. */
export function checkRevision({ listener, revision }: UserBook, given: number): void {
  if (given !== revision)
    throw new ApiError(
      409,
      `listener ${listener}: expected revision ${given}, the current revision is ${revision}`,
    );
}

/** Throws `ApiError` 400. */
export function recordOf(
  draft: UserDraft,
  support: UserSupport,
  fresh: Pick<UserRecord, "id" | "token" | "createdAtMs">,
): UserRecord {
  refuseForeign(draft, support);
  const given = draft[support.credential] ?? "";
  return {
    ...fresh,
    name: checkedName(draft.name),
    credential: given === "" ? support.makeCredential() : checkedCredential(given, support),
    flow: checkedFlow(draft.flow ?? "", support),
    enabled: draft.enabled ?? true,
    trafficGeneration: 1,
    updatedAtMs: fresh.createdAtMs,
    limits: changedLimits(NO_LIMITS, draft.limits),
    remarks: changedRemarks(NO_REMARKS, draft),
  };
}

/** Throws `ApiError` 400. What the change does not name stays. */
export function changedRecord(
  record: UserRecord,
  change: UserChange,
  support: UserSupport,
  nowMs: number,
): UserRecord {
  refuseForeign(change, support);
  const { name, enabled, flow } = change;
  const credential = change[support.credential];
  return {
    ...record,
    ...(name === undefined ? {} : { name: checkedName(name) }),
    ...(enabled === undefined ? {} : { enabled }),
    ...(credential === undefined ? {} : { credential: checkedCredential(credential, support) }),
    ...(flow === undefined ? {} : { flow: checkedFlow(flow, support) }),
    updatedAtMs: Math.max(nowMs, record.createdAtMs),
    limits: changedLimits(record.limits, change.limits),
    remarks: changedRemarks(record.remarks, change),
  };
}

/**
 * The book with one user added, replaced or, with null, removed. Throws `ApiError` 400 when two could not be
 * distinguished.
 */
export function withUser(
  book: UserBook,
  id: string,
  record: UserRecord | null,
  support: UserSupport,
  nowMs: number,
): UserBook {
  const index = book.index ?? BookIndex.of(book.users.values(), support);
  if (record !== null) index.refuseDoubles(book.listener, record);
  return {
    ...book,
    users: PersistentMap.from(book.users).with([[id, record]]),
    index: index.with(book.users.get(id) ?? null, record),
    revision: nextRevision(book.revision, nowMs),
  };
}

/** The users for the listener: it gets none of the `barred` ones. */
export function activeUsers({ users }: UserBook, blocked: ReadonlySet<string>): readonly User[] {
  return [...users.values()].filter(({ id, enabled }) => enabled && !blocked.has(id)).map(listed);
}

function listed({ id, credential, flow }: UserRecord): User {
  return { id, credential, flow: flow === "" ? null : flow };
}

/** Changes one user in a listener, which has the others already. */
export function changeListener(
  target: ManagedInbound,
  book: UserBook,
  blocked: ReadonlySet<string>,
  id: string,
): void {
  if (target.changeUsers === undefined) return target.replaceUsers(activeUsers(book, blocked));
  const user = book.users.get(id);
  const isListed = user?.enabled === true && !blocked.has(id);
  target.changeUsers(isListed ? { gone: [], come: [listed(user)] } : { gone: [id], come: [] });
}

/** The same for many; with most of the users in it, the list as a whole is cheaper. */
export function changeListenerUsers(target: ManagedInbound, { book, blocked, gone, come }: ListChange): void {
  const few = (gone.length + come.length) * 4 < book.users.size + gone.length;
  if (target.changeUsers === undefined || !few) target.replaceUsers(activeUsers(book, blocked));
  else target.changeUsers({ gone, come: come.map(listed) });
}

interface ListChange {
  readonly book: UserBook;
  readonly blocked: ReadonlySet<string>;
  /** Ids that the listener has and is to have no more. */
  readonly gone: readonly string[];
  readonly come: readonly UserRecord[];
}

/** Does the change concern the listener? Null: it does not have the user. */
export function changesListener(before: UserRecord | null, after: UserRecord | null): boolean {
  if (before === null || after === null) return before !== after;
  return before.credential !== after.credential || before.flow !== after.flow;
}

/** Throws `ApiError` 400 where no listener of this kind takes the user. */
export function checkForListener({ credential, flow }: UserRecord, support: UserSupport): void {
  checkedCredential(credential, support);
  checkedFlow(flow, support);
}

function refuseForeign(change: UserChange | UserDraft, { credential, flows, label }: UserSupport): void {
  const foreign = credential === "uuid" ? "password" : "uuid";
  if ((change[foreign] ?? "") !== "")
    throw new ApiError(400, `${foreign}: users of ${label} have a ${credential}`);
  if (flows.length === 0 && (change.flow ?? "") !== "")
    throw new ApiError(400, `flow: users of ${label} have none`);
}

function checkedName(text: string): string {
  const name = text.trim();
  if (name === "") throw new ApiError(400, "name: must not be blank");
  if (!name.isWellFormed()) throw new ApiError(400, "name: must be Unicode text; it has half a character");
  if (Buffer.byteLength(name) > MAX_NAME_BYTES)
    throw new ApiError(400, `name: must have at most ${MAX_NAME_BYTES} bytes`);
  return name;
}

function checkedCredential(text: string, support: UserSupport): string {
  // Half a character has no bytes of its own: on the wire it would be what another one is.
  if (text.isWellFormed() && support.identify(text) !== null) return text;
  throw new ApiError(400, `${support.credential}: ${text === "" ? "must not be empty" : "is not valid"}`);
}

function checkedFlow(flow: string, { flows }: UserSupport): string {
  if (flow === "" || flows.includes(flow)) return flow;
  throw new ApiError(400, `flow: expected ${flows.join(" or ")} or nothing`);
}
