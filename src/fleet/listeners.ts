/** Listeners with their users, between the database and a node. */
import type { ClientBase } from "pg";
import type { Traffic } from "#users/counters.ts";
import type { UserBook, UserRecord } from "#users/user-book.ts";
import { ContentError, FleetError } from "./errors.ts";
import { USER_COLUMNS, userJson, userOfRow, type UserRow } from "./rows.ts";
import type { TokenSeal } from "./seal.ts";

/** A listener at one revision. */
export interface FleetListener {
  readonly id: string;
  readonly protocol: string;
  readonly revision: number;
  /** With `isWhole` all users, else those who may differ from the revision asked for; null: the user is gone. */
  readonly users: ReadonlyMap<string, UserRecord | null>;
  readonly isWhole: boolean;
  /** Of users whose rows no weir has written; to a node they are gone. */
  readonly faults: readonly string[];
}

interface ListenerRow {
  readonly listener_id: string;
  readonly protocol: string;
  readonly revision: string;
  readonly changed: string | null;
}

type Row = ListenerRow & (UserRow | { readonly id: null });

const HEAD = `SELECT l.id AS listener_id, l.protocol, l.revision`;

/** One statement, and so one state: every user of the listener. Null: the fleet has none of this name, or it is hidden. */
export async function wholeListener(
  client: ClientBase,
  tag: string,
  seal: TokenSeal,
): Promise<FleetListener | null> {
  const { rows } = await client.query<Row>(
    `${HEAD}, u.id AS changed, ${USER_COLUMNS}
     FROM weir.listener l LEFT JOIN weir.app_user u ON u.listener = l.tag WHERE l.tag = $1 ORDER BY u.id`,
    [tag],
  );
  return listenerOf(rows, seal, true);
}

/** The same for what has changed since a revision. Null also where the database does not know that revision any more. */
export async function listenerSince(
  client: ClientBase,
  tag: string,
  revision: number,
  seal: TokenSeal,
): Promise<FleetListener | null> {
  const { rows } = await client.query<Row>(
    `${HEAD}, c.user_id AS changed, ${USER_COLUMNS}
     FROM weir.listener l
     LEFT JOIN (SELECT DISTINCT user_id FROM weir.change WHERE listener = $1 AND revision > $2) c ON true
     LEFT JOIN weir.app_user u ON u.id = c.user_id
     WHERE l.tag = $1 AND EXISTS (SELECT FROM weir.change WHERE listener = $1 AND revision = $2)`,
    [tag, revision],
  );
  return listenerOf(rows, seal, false);
}

function listenerOf(rows: readonly Row[], seal: TokenSeal, isWhole: boolean): FleetListener | null {
  const [first] = rows;
  if (first === undefined) return null;
  const revision = Number(first.revision);
  if (!Number.isSafeInteger(revision))
    throw new ContentError(`no weir has written revision ${first.revision}`);
  const users = new Map<string, UserRecord | null>();
  const faults: string[] = [];
  for (const row of rows) {
    if (row.changed === null) continue;
    try {
      users.set(row.changed, row.id === null ? null : userOfRow(row, seal));
    } catch (error) {
      if (!(error instanceof FleetError)) throw error;
      users.set(row.changed, null);
      faults.push(error.message);
    }
  }
  return { id: first.listener_id, protocol: first.protocol, revision, users, isWhole, faults };
}

/** With its users and what they moved. False: the fleet has this very listener already. Rejects with `FleetError` for another one. */
export async function publishListener(
  client: ClientBase,
  book: UserBook,
  { node, seal, traffic }: Publishing,
): Promise<boolean> {
  const records = [...book.users.values()].map((user) => {
    const { uploadBytes = 0, downloadBytes = 0 } = traffic.get(user.id) ?? {};
    return { ...userJson(user, seal), upload: uploadBytes, download: downloadBytes };
  });
  const { listener, id, protocol, revision } = book;
  const { rows } = await client.query<{ made: boolean }>(
    "SELECT weir.publish_listener($1, $2, $3, $4, $5, $6) AS made",
    [listener, id, protocol, revision, JSON.stringify(records), node],
  );
  if (rows[0]?.made === true) return true;
  const present = await client.query<{ id: string }>("SELECT id FROM weir.listener WHERE tag = $1", [
    listener,
  ]);
  if (present.rows[0]?.id === id) return false;
  throw new FleetError(
    `the fleet has another listener ${listener} already; its users are not mixed with those of this state file`,
  );
}

export interface Publishing {
  /** What the audit log says. */
  readonly node: string;
  readonly seal: TokenSeal;
  readonly traffic: ReadonlyMap<string, Traffic>;
}

/** Rejects with `FleetError` where other nodes seal with another secret. */
export async function proveSeal(client: ClientBase, seal: TokenSeal): Promise<void> {
  const { rows } = await client.query<{ proof: Buffer }>("SELECT weir.prove_seal($1) AS proof", [seal.proof]);
  if (rows[0]?.proof.equals(seal.proof) !== true)
    throw new FleetError(
      "svc.secret differs from that of the fleet's other nodes: all nodes need the same one",
    );
}
