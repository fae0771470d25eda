/** From the `svc.fleet` block to what a connection is opened with. */
import { readFileSync } from "node:fs";
import { ConfigError, messageOf } from "#core/errors.ts";
import { parsePostgresUri } from "#lib/postgres-uri.ts";
import type { DatabaseOptions } from "./connection.ts";
import type { FleetSettings } from "#users/fleet-settings.ts";

const DSN_VARIABLE = "WEIR_FLEET_DSN";
const MOST_FILE_CHARACTERS = 1024 * 1024;

/** Longer than any statement of a node takes where the database is well. */
const STATEMENT_TIMEOUT_MS = 5_000;

/** Read anew for every connection, so that a password can be rotated. Throws `ConfigError`, without the secret. */
export function databaseOptions(settings: FleetSettings, env: NodeJS.ProcessEnv): DatabaseOptions {
  const { dsn, dsnFile, ca, node } = settings;
  const [source, key] =
    dsn !== null
      ? [dsn, "svc.fleet.dsn"]
      : dsnFile !== null
        ? [textOf(dsnFile, "svc.fleet.dsn-file").trim(), "svc.fleet.dsn-file"]
        : [env[DSN_VARIABLE] ?? "", DSN_VARIABLE];
  if (source === "")
    throw new ConfigError(
      `svc.fleet: no database: dsn, dsn-file or the environment variable ${DSN_VARIABLE} names it`,
    );
  const uri = parsePostgresUri(source);
  if (typeof uri === "string") throw new ConfigError(`${key}: ${uri}`);
  const authorities = ca === null || ca.includes("-----BEGIN ") ? ca : textOf(ca, "svc.fleet.ca");
  return { uri, ca: authorities, name: `weir ${node}`, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
}

function textOf(path: string, key: string): string {
  try {
    const text = readFileSync(path, "utf8");
    if (text.length <= MOST_FILE_CHARACTERS) return text;
  } catch (error) {
    throw new ConfigError(`${key}: cannot be read: ${messageOf(error)}`);
  }
  throw new ConfigError(`${key}: ${path} is larger than 1 MiB`);
}
