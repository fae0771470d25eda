/** Brings the schema to the version of this program, forward only. */
import type { ClientBase } from "pg";
import { FleetError } from "./errors.ts";
import { OLDEST, VERSIONS } from "./schema/versions.ts";

export interface Migration {
  /** 0: there was no schema. */
  readonly from: number;
  readonly to: number;
}

/** Any number that no other program is likely to take: `weir` in ASCII. */
const LOCK = 0x77656972;

/** For a table that another session reads. */
const MOST_WAIT_MS = 2_000;

const ROLES = ["weir_admin", "weir_node"] as const;

/**
 * In one transaction, and one program at a time: everything or nothing is done. With `isDry` it is done and taken back.
 * Rejects with `FleetError` where the schema is newer, and as the driver does.
 */
export async function migrate(
  client: ClientBase,
  { isDry }: { readonly isDry: boolean },
): Promise<Migration> {
  await client.query("BEGIN");
  try {
    await client.query("SET LOCAL statement_timeout = 0");
    await client.query("SELECT pg_advisory_xact_lock($1)", [LOCK]);
    const from = await schemaVersion(client);
    refuseNewer(from);
    // What waits for a table keeps all nodes waiting behind itself.
    await client.query(`SET LOCAL lock_timeout = ${MOST_WAIT_MS}`);
    if (from === 0) await lay(client);
    for (const [at, text] of VERSIONS.entries()) {
      if (at < from) continue;
      await client.query(text);
      await client.query("INSERT INTO weir.version (number) VALUES ($1)", [at + 1]);
    }
    await client.query(isDry ? "ROLLBACK" : "COMMIT");
    return { from, to: VERSIONS.length };
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {}); // the connection may be gone; then the server does it
    throw error;
  }
}

/** 0: there is none. */
export async function schemaVersion(client: ClientBase): Promise<number> {
  const table = "SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace";
  const { rows } = await client.query<{ is_there: boolean }>(
    `SELECT EXISTS (${table} WHERE n.nspname = 'weir' AND c.relname = 'version') AS is_there`,
  );
  if (rows[0]?.is_there !== true) return 0;
  const found = await client.query<{ number: number }>("SELECT max(number) AS number FROM weir.version");
  return found.rows[0]?.number ?? 0;
}

/** Throws `FleetError` where the schema is not one that this program works with. */
export async function refuseOtherSchema(client: ClientBase): Promise<void> {
  const version = await schemaVersion(client);
  refuseNewer(version);
  if (version === 0) throw new FleetError("the database has no schema weir yet: run weir fleet migrate");
  if (version < OLDEST)
    throw new FleetError(
      `the schema has version ${version}, this weir needs ${OLDEST} at least: run weir fleet migrate`,
    );
}

function refuseNewer(version: number): void {
  if (version > VERSIONS.length)
    throw new FleetError(
      `the schema has version ${version}, this weir knows ${VERSIONS.length}: update weir on this node`,
    );
}

/** What all versions stand on. Roles belong to the server, so another database of it may have made them. */
async function lay(client: ClientBase): Promise<void> {
  for (const role of ROLES) {
    const { rowCount } = await client.query("SELECT FROM pg_roles WHERE rolname = $1", [role]);
    if (rowCount === 0) await client.query(`CREATE ROLE ${role} NOLOGIN`);
  }
  await client.query(`
    CREATE SCHEMA IF NOT EXISTS weir;
    CREATE TABLE weir.version (number integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
  `);
  const { rows } = await client.query<{ is_member: boolean }>(
    "SELECT pg_has_role(current_user, 'weir_admin', 'MEMBER') AS is_member",
  );
  if (rows[0]?.is_member !== true) await client.query("GRANT weir_admin TO CURRENT_USER");
}
