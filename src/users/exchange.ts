/** A state file as one JSON document: for moving users between machines and programs. It holds every credential. */
import * as z from "zod";
import { StoreError } from "#core/errors.ts";
import type { Protocol, UserSupport } from "#core/protocol.ts";
import type { UserLimits } from "#core/users.ts";
import type { Store } from "#store/backup.ts";
import type { Change } from "#store/kv.ts";
import { NO_TRAFFIC, type Traffic } from "./counters.ts";
import { decodeState, encodeListener, encodeUser, LISTENERS, USERS } from "./records.ts";
import { remarksJson, remarksOf, storedRemarks } from "./remarks.ts";
import { limitsJson, limitsOf, storedLimits, type StoredLimits } from "./stored-limits.ts";
import type { UserBook, UserRecord } from "./user-book.ts";

const count = () => z.int().nonnegative();
const storedUser = z.object({
  id: z.string().min(1),
  /** Where it stands says the same. */
  inbound: z.string().optional(),
  name: z.string(),
  uuid: z.string().default(""),
  password: z.string().default(""),
  flow: z.string().default(""),
  enabled: z.boolean(),
  upload_bytes: count(),
  download_bytes: count(),
  traffic_generation: count(),
  created_at: count(),
  updated_at: count(),
  ...storedRemarks.shape,
  ...storedLimits.shape,
});
const document = z.object({
  version: z.literal(1),
  listeners: z.record(
    z.string(),
    z.object({
      id: z.string(),
      name: z.string(),
      protocol: z.string(),
      revision: count(),
      applied_revision: count(),
      users: z.array(storedUser),
    }),
  ),
  subscriptions: z.record(z.string(), z.string()),
});

/** With a line break at the end. Throws `StoreError`. */
export function exportState(store: Store, protocols: readonly Protocol[]): string {
  const { books, traffic } = decodeState(store.entries(LISTENERS), store.entries(USERS));
  const subscriptions: Record<string, string> = {};
  const listeners: Record<string, unknown> = {};
  for (const [name, book] of books) {
    const kind = supportOf(book.protocol, protocols)?.credential ?? "password";
    const users = [...book.users.values()].map((user) => {
      subscriptions[user.id] = user.token;
      return userJson(book, user, kind, traffic.get(user.id) ?? NO_TRAFFIC);
    });
    const { id, protocol, revision, appliedRevision } = book;
    listeners[name] = { id, name, protocol, revision, applied_revision: appliedRevision, users };
  }
  return `${JSON.stringify({ version: 1, generation: store.generation, listeners, subscriptions })}\n`;
}

function userJson(
  { listener, protocol }: UserBook,
  user: UserRecord,
  credentialKind: string,
  { uploadBytes, downloadBytes, usage }: Traffic,
) {
  return {
    id: user.id,
    inbound: listener,
    protocol,
    name: user.name,
    [credentialKind]: user.credential,
    ...(user.flow === "" ? {} : { flow: user.flow }),
    enabled: user.enabled,
    upload_bytes: uploadBytes,
    download_bytes: downloadBytes,
    traffic_generation: user.trafficGeneration,
    created_at: user.createdAtMs,
    updated_at: user.updatedAtMs,
    ...remarksJson(user.remarks),
    ...limitsJson(user.limits, usage),
  };
}

/**
 * Fills an empty store, and answers with the number of users. Throws `StoreError` where the document contradicts itself or
 * the store holds something.
 */
export function importState(store: Store, text: string, protocols: readonly Protocol[]): number {
  if (store.generation !== 0)
    throw new StoreError("the state file is not new; users are imported into a new one only");
  const read = document.safeParse(parsed(text));
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new StoreError(`not a state document: ${issue?.path.join(".")}: ${issue?.message}`);
  }
  refuseStrayTokens(read.data);
  const changes: Change[] = [];
  let users = 0;
  for (const [key, { name, users: stored, ...rest }] of Object.entries(read.data.listeners)) {
    const book: UserBook = {
      id: rest.id,
      listener: name,
      protocol: rest.protocol,
      revision: rest.revision,
      appliedRevision: rest.applied_revision,
      users: new Map(),
    };
    changes.push({ part: LISTENERS, key, value: encodeListener(book) });
    const support = supportOf(rest.protocol, protocols);
    for (const user of stored) refuseUnusable(name, user, support, read.data.subscriptions[user.id] ?? "");
    refuseDoubles(name, stored, support);
    for (const user of stored) {
      const { limits, usage } = limitsOf(pickLimits(user));
      const record = recordOf(user, read.data.subscriptions[user.id] ?? "", limits);
      const traffic = { uploadBytes: user.upload_bytes, downloadBytes: user.download_bytes, usage };
      changes.push({ part: USERS, key: user.id, value: encodeUser(book, record, traffic) });
      users++;
    }
  }
  const of = (part: string) =>
    changes.flatMap((one) => (one.part === part ? [[one.key, one.value as Buffer] as const] : []));
  decodeState(of(LISTENERS), of(USERS)); // by the rules of every start, before anything is written
  store.commit(changes, { backup: true });
  return users;
}

/** The parser's own message would quote the document, and with it credentials. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new StoreError("not a state document: it is no JSON");
  }
}

function refuseStrayTokens({ listeners, subscriptions }: z.output<typeof document>): void {
  const known = new Set(Object.values(listeners).flatMap(({ users }) => users.map(({ id }) => id)));
  const stray = Object.keys(subscriptions).find((id) => !known.has(id));
  if (stray !== undefined) throw new StoreError(`subscriptions: there is no user ${stray}`);
}

/** What the API would not have taken. The message names neither credential nor token. */
function refuseUnusable(
  listener: string,
  user: z.output<typeof storedUser>,
  support: UserSupport | undefined,
  token: string,
): void {
  const wrong = (what: string) => new StoreError(`listener ${listener}: user ${user.id}: ${what}`);
  const { inbound = listener, flow } = user;
  if (inbound !== listener) throw wrong(`it is said to be of listener ${inbound}`);
  const credential = credentialOf(user);
  const foreign = support?.credential === "uuid" ? user.password : user.uuid;
  if (!user.name.isWellFormed()) throw wrong("the name has half a character");
  if (support !== undefined && foreign !== "")
    throw wrong(`users of ${support.label} have a ${support.credential}`);
  if (!credential.isWellFormed() || support?.identify(credential) === null)
    throw wrong(`the ${support?.credential ?? "credential"} is not valid`);
  if (support !== undefined && flow !== "" && !support.flows.includes(flow))
    throw wrong(`${support.label} has no flow ${flow}`);
  if (Buffer.from(token, "base64url").toString("base64url") !== token)
    throw wrong("the token is not base64url without padding, as it is written");
}

/** Two users with the same name or credential: the API refuses such a pair, and a listener could not tell them apart. */
function refuseDoubles(
  listener: string,
  users: readonly z.output<typeof storedUser>[],
  support: UserSupport | undefined,
): void {
  const taken = new Set<string>();
  for (const user of users) {
    const credential = credentialOf(user);
    const identity = support?.identify(credential) ?? credential;
    for (const mark of [`name ${user.name.toLowerCase()}`, `credential ${identity}`]) {
      if (taken.has(mark))
        throw new StoreError(`listener ${listener}: user ${user.name} is there twice, by name or credential`);
      taken.add(mark);
    }
  }
}

/** Undefined: a protocol that this build does not know, or one without managed users. */
function supportOf(protocol: string, protocols: readonly Protocol[]): UserSupport | undefined {
  return protocols.find(({ type }) => type === protocol)?.users;
}

function credentialOf({ uuid, password }: z.output<typeof storedUser>): string {
  return uuid === "" ? password : uuid;
}

/** Other members are none of its business, and an empty object means no limits. */
function pickLimits(user: z.output<typeof storedUser>): StoredLimits {
  const keys = storedLimits.keyof().options;
  return Object.fromEntries(keys.flatMap((key) => (user[key] === undefined ? [] : [[key, user[key]]])));
}

function recordOf(user: z.output<typeof storedUser>, token: string, limits: UserLimits): UserRecord {
  const { id, name, flow, enabled } = user;
  return {
    id,
    name,
    credential: credentialOf(user),
    flow,
    enabled,
    trafficGeneration: user.traffic_generation,
    createdAtMs: user.created_at,
    updatedAtMs: user.updated_at,
    token,
    limits,
    remarks: remarksOf(user),
  };
}
