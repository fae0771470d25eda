/** What `weir fleet check` says of the database, as this node's login sees it. */
import type { ClientBase } from "pg";
import { OLDEST, VERSIONS } from "./schema/versions.ts";
import { schemaVersion } from "./migrate.ts";

export interface CheckReport {
  readonly lines: readonly string[];
  /** What must be done before a node can take part; empty: nothing. */
  readonly missing: readonly string[];
}

const OLDEST_SERVER = 140_000;
const MOST_CLOCK_MS = 5_000;

interface Facts {
  readonly number: number;
  readonly version: string;
  readonly login: string;
  readonly is_admin: boolean | null;
  readonly is_node: boolean | null;
  readonly now_ms: number;
}

const FACTS = `
  SELECT current_setting('server_version_num')::integer AS number, current_setting('server_version') AS version,
    session_user AS login, extract(epoch FROM clock_timestamp())::float8 * 1000 AS now_ms,
    (SELECT pg_has_role(oid, 'MEMBER') FROM pg_roles WHERE rolname = 'weir_admin') AS is_admin,
    (SELECT pg_has_role(oid, 'MEMBER') FROM pg_roles WHERE rolname = 'weir_node') AS is_node`;

/** Rejects as the driver does. `listeners` are those that this node manages. */
export async function checkDatabase(client: ClientBase, listeners: readonly string[]): Promise<CheckReport> {
  const beforeMs = Date.now();
  const { rows } = await client.query<Facts>(FACTS);
  const latencyMs = Date.now() - beforeMs;
  const [facts] = rows;
  if (facts === undefined) return { lines: [], missing: ["the server answers nothing"] };
  const clockMs = Math.round(facts.now_ms - (beforeMs + latencyMs / 2));
  const missing: string[] = [];
  if (facts.number < OLDEST_SERVER) missing.push(`PostgreSQL ${facts.version} is older than 14`);
  if (Math.abs(clockMs) > MOST_CLOCK_MS)
    missing.push(`the clocks differ by ${clockMs} ms: quotas of days begin at other times; synchronise them`);
  const role = facts.is_admin === true ? "weir_admin" : facts.is_node === true ? "weir_node" : "none";
  const lines = [
    `server: PostgreSQL ${facts.version}`,
    `login: ${facts.login}, role ${role}`,
    `clock: ${clockMs} ms ahead of this machine`,
    `latency: ${latencyMs} ms`,
  ];
  if (role === "none")
    missing.push(`GRANT weir_node TO ${facts.login}; (or weir_admin), by an administrator of the database`);
  else {
    const version = await schemaVersion(client);
    const rest = version < VERSIONS.length ? ", weir fleet migrate brings the rest" : "";
    lines.push(`schema: version ${version} of ${VERSIONS.length}${rest}`);
    if (version < OLDEST) missing.push("the schema is not complete: weir fleet migrate");
    else if (version > VERSIONS.length) missing.push("the schema is newer than this weir: update weir here");
    else await lookAtListeners(client, listeners, { lines, missing, login: facts.login });
  }
  return { lines, missing };
}

interface Rights {
  readonly sees: boolean;
  readonly writes: boolean;
  readonly users: number;
}

async function lookAtListeners(
  client: ClientBase,
  listeners: readonly string[],
  { lines, missing, login }: { lines: string[]; missing: string[]; readonly login: string },
): Promise<void> {
  for (const tag of listeners) {
    const { rows } = await client.query<Rights>(
      `SELECT weir.sees($1) AS sees, weir.may_write($1) AS writes,
        (SELECT count(*)::integer FROM weir.app_user WHERE listener = $1) AS users`,
      [tag],
    );
    const { sees = false, writes = false, users = 0 } = rows[0] ?? {};
    lines.push(
      `listener ${tag}: ${sees ? `${users} users, ${writes ? "may" : "may not"} change them` : "not seen"}`,
    );
    if (!sees)
      missing.push(`weir fleet allow ${login} ${tag} (with -writes to change users), by an administrator`);
  }
}
