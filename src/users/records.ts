/** Books as the state file has them: a record a listener, a record a user with its counters. */
import { StoreError } from "#core/errors.ts";
import type { UserLimits } from "#core/users.ts";
import type { Traffic } from "./counters.ts";
import type { StoredHour } from "./history.ts";
import { decodeHistories, HISTORY, historyOf, type StoredHistories } from "./history-records.ts";
import { NO_LIMITS } from "./limits.ts";
import { remarksJson, remarksOf, storedRemarks, type StoredRemarks } from "./remarks.ts";
import { limitsJson, limitsOf, type StoredLimits } from "./stored-limits.ts";
import { isToken } from "./tokens.ts";
import type { UserBook, UserRecord } from "./user-book.ts";

export const LISTENERS = "listeners";
export const USERS = "users";
/** What a node of a fleet knows of itself and of the other nodes; empty for a node that is in none. */
export const FLEET = "fleet";
/** What users moved on a node of a fleet, and its database has not acknowledged. */
export const LEDGER = "ledger";
export const PARTS = [LISTENERS, USERS, FLEET, LEDGER, HISTORY] as const;

interface StoredListener {
  readonly id: string;
  readonly name: string;
  readonly protocol: string;
  readonly revision: number;
  readonly applied_revision: number;
}

interface StoredUser extends StoredRemarks {
  readonly id: string;
  readonly inbound: string;
  readonly protocol: string;
  readonly name: string;
  readonly credential: string;
  readonly flow: string;
  readonly enabled: boolean;
  readonly upload_bytes: number;
  readonly download_bytes: number;
  readonly traffic_generation: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly token: string;
  /** Absent: none. */
  readonly limits?: StoredLimits;
  /** What was moved in the hour that goes on. Absent: nothing. */
  readonly hour?: StoredHour;
}

export function encodeListener({ id, listener, protocol, revision, appliedRevision }: UserBook): Buffer {
  const stored: StoredListener = {
    id,
    name: listener,
    protocol,
    revision,
    applied_revision: appliedRevision,
  };
  return Buffer.from(JSON.stringify(stored));
}

export function encodeUser({ listener, protocol }: UserBook, user: UserRecord, traffic: Traffic): Buffer {
  const hour = traffic.history?.openHour ?? null;
  const stored: StoredUser = {
    id: user.id,
    inbound: listener,
    protocol,
    name: user.name,
    credential: user.credential,
    flow: user.flow,
    enabled: user.enabled,
    upload_bytes: traffic.uploadBytes,
    download_bytes: traffic.downloadBytes,
    traffic_generation: user.trafficGeneration,
    created_at: user.createdAtMs,
    updated_at: user.updatedAtMs,
    token: user.token,
    ...remarksJson(user.remarks),
    ...(user.limits === NO_LIMITS ? {} : { limits: limitsJson(user.limits, traffic.usage) }),
    ...(hour === null ? {} : { hour }),
  };
  return Buffer.from(JSON.stringify(stored));
}

export interface StoredState {
  readonly books: ReadonlyMap<string, UserBook>;
  readonly traffic: ReadonlyMap<string, Traffic>;
  /** Of users who are there no more. */
  readonly histories: Pick<StoredHistories, "removed" | "stray">;
}

/** Of an opened store. Throws `StoreError` as `decodeState` does. */
export function stateIn(records: ReadonlyMap<string, Records>): StoredState {
  return decodeState(records.get(LISTENERS) ?? [], records.get(USERS) ?? [], records.get(HISTORY) ?? []);
}

type Records = Iterable<readonly [key: string, value: Buffer]>;

/** Throws `StoreError` where the records contradict each other: then something wrote them that did not know the rules. */
export function decodeState(listeners: Records, users: Records, rows: Records = []): StoredState {
  const books = new Map<string, UserBook & { users: Map<string, UserRecord> }>();
  const traffic = new Map<string, Traffic>();
  const tokens = new Set<string>();
  for (const [key, value] of listeners) {
    const { id, name, protocol, revision, applied_revision }: StoredListener = JSON.parse(value.toString());
    const sound = name === key && id !== "" && protocol !== "" && isCount(revision) && revision > 0;
    if (!sound || !isCount(applied_revision) || applied_revision > revision)
      throw new StoreError(`state of listener ${key}: the record contradicts itself`);
    books.set(key, {
      id,
      listener: name,
      protocol,
      revision,
      appliedRevision: applied_revision,
      users: new Map(),
    });
  }
  const known = [...users];
  const ids = new Set(known.map(([key]) => key));
  const { present, ...histories } = decodeHistories(rows, (id) => ids.has(id));
  for (const [key, value] of known) {
    const stored: StoredUser = JSON.parse(value.toString());
    const book = books.get(stored.inbound);
    if (book === undefined || stored.id !== key || stored.protocol !== book.protocol || !isSound(stored))
      throw new StoreError(`state of user ${key}: the record contradicts itself`);
    if (tokens.has(stored.token)) throw new StoreError(`state of user ${key}: the token of another user`);
    tokens.add(stored.token);
    const { limits, usage } = limitsOf(stored.limits);
    book.users.set(key, recordOf(stored, limits));
    const history = historyOf(key, present.get(key), stored.hour);
    const { upload_bytes: uploadBytes, download_bytes: downloadBytes } = stored;
    traffic.set(key, { uploadBytes, downloadBytes, usage, history });
  }
  return { books, traffic, histories };
}

function recordOf(stored: StoredUser, limits: UserLimits): UserRecord {
  const { id, name, credential, flow, enabled, token } = stored;
  return {
    id,
    name,
    credential,
    flow,
    enabled,
    trafficGeneration: stored.traffic_generation,
    createdAtMs: stored.created_at,
    updatedAtMs: stored.updated_at,
    token,
    limits,
    remarks: remarksOf(stored),
  };
}

function isSound(stored: StoredUser): boolean {
  const { upload_bytes, download_bytes, traffic_generation, created_at, updated_at, token } = stored;
  const counts = [upload_bytes, download_bytes, traffic_generation, created_at, updated_at];
  const named = stored.name !== "" && stored.name === stored.name.trim() && stored.credential !== "";
  return (
    storedRemarks.safeParse(stored).success &&
    counts.every(isCount) &&
    traffic_generation > 0 &&
    created_at > 0 &&
    updated_at >= created_at &&
    named &&
    isToken(token)
  );
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
