/** Databases of other programs: opened for reading only, and read within bounds. */
import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Json } from "./json.ts";

const MOST_FILE_BYTES = 1024 * 1024 * 1024;
/** Of a table; more are no panel's. */
const MOST_ROWS = 200_000;
/** Of one value (SQLITE_LIMIT_LENGTH): the clients of an inbound stand in one. */
const MOST_VALUE_BYTES = 256 * 1024 * 1024;

/** Throws `ConfigError`. A log that the other program left beside the file is read, too, where it can be. */
export function openForeign(path: string): DatabaseSync {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() !== true) throw new ConfigError(`${path}: there is no such file`);
  if (stats.size > MOST_FILE_BYTES) throw new ConfigError(`${path}: the file is larger than 1 GiB`);
  try {
    const database = new DatabaseSync(path, { readOnly: true, limits: { length: MOST_VALUE_BYTES } });
    database.exec("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; PRAGMA cell_size_check = ON");
    return database;
  } catch (error) {
    throw new ConfigError(`${path}: ${messageOf(error)}`);
  }
}

/** Rows with the columns that the table has. Throws `ConfigError`, also where there is no such table. */
export function rowsOf(database: DatabaseSync, table: string): readonly Json[] {
  if (!hasTable(database, table)) throw new ConfigError(`there is no table ${table}`);
  try {
    const statement = database.prepare(`SELECT * FROM "${table}" LIMIT ${MOST_ROWS + 1}`);
    statement.setReadBigInts(true);
    const rows = statement.all();
    if (rows.length > MOST_ROWS)
      throw new ConfigError(`table ${table}: more than ${MOST_ROWS} rows are not read`);
    return rows.map((row) => ({ ...row }));
  } catch (error) {
    throw new ConfigError(`table ${table}: ${messageOf(error)}`);
  }
}

/** A view of the name is none: it could compute without end. */
function hasTable(database: DatabaseSync, table: string): boolean {
  try {
    const kind = database.prepare("SELECT type FROM sqlite_schema WHERE name = ?").get(table);
    return kind?.["type"] === "table";
  } catch (error) {
    throw new ConfigError(`the database cannot be read: ${messageOf(error)}`);
  }
}
