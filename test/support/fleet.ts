/** A fleet's database for tests: PostgreSQL with the schema, and logins of nodes. */
import assert from "node:assert/strict";
import type { Client } from "pg";
import { connect, type DatabaseOptions } from "#fleet/connection.ts";
import { migrate } from "#fleet/migrate.ts";
import { databaseOptions } from "#fleet/source.ts";
import { parsePostgresUri } from "#lib/postgres-uri.ts";
import type { FleetSettings } from "#users/fleet-settings.ts";
import { startPostgres, type TestPostgres } from "./postgres.ts";

export interface FleetDatabase extends AsyncDisposable {
  readonly server: TestPostgres;
  options(role?: string): DatabaseOptions;
  /** A login that is a node; its password is its name. */
  login(name: string, listeners: readonly string[], writes: boolean): void;
  /** A new database with the schema beside the first one; answers with its settings for a node. */
  fresh(): Promise<(node: string, role?: string) => FleetSettings>;
  /** What psql prints of it in the database of these settings. */
  in(settings: FleetSettings, text: string): string;
  /** A connection as a login; null: as the superuser. */
  as<T>(role: string | null, work: (client: Client) => Promise<T>): Promise<T>;
}

/** What a node's block needs. */
export type NodeSettings = Pick<FleetSettings, "dsn" | "ca" | "node"> & Partial<FleetSettings>;

/** `svc.fleet`, with the authority in `ca.pem` of the home directory. */
export function fleetBlock({
  dsn,
  node,
  address = "",
  labels = {},
  onPartition = "allow",
}: NodeSettings): string {
  return `dsn: "${dsn}"
ca: ca.pem
node: ${node}
address: ${address || `${node}.example.com`}
labels: ${JSON.stringify(labels)}
on-partition: ${onPartition}
`;
}

/** For connections of the test itself: on a busy machine a handshake takes its time. */
export function patient(dsn: string): string {
  return `${dsn}?connect_timeout=60`;
}

export async function startFleetDatabase(how?: Parameters<typeof startPostgres>[0]): Promise<FleetDatabase> {
  const server = await startPostgres(how);
  let made = 0;
  const options = (role?: string): DatabaseOptions => {
    const uri = parsePostgresUri(patient(role === undefined ? server.dsn() : server.dsn(role, role)));
    assert.ok(typeof uri !== "string", typeof uri === "string" ? uri : "");
    return { uri, ca: server.authority.cert, name: `weir ${role ?? "test"}`, statementTimeoutMs: 3000 };
  };
  const database: FleetDatabase = {
    server,
    options,
    login(name, listeners, writes) {
      server.sql(`CREATE ROLE ${name} LOGIN PASSWORD '${name}' IN ROLE weir_node`);
      server.sql(`SELECT weir.allow('${name}', '{${listeners.join(",")}}', ${writes})`);
    },
    async fresh() {
      const name = `fleet_${++made}`;
      server.sql(`CREATE DATABASE ${name}`);
      const settingsOf = (node: string, role?: string): FleetSettings => ({
        dsn: role === undefined ? server.dsn("postgres", undefined, name) : server.dsn(role, role, name),
        dsnFile: null,
        ca: server.authority.cert,
        node,
        address: `${node}.example.com`,
        labels: {},
        onPartition: "allow",
      });
      const own = settingsOf("test");
      const client = await connect(databaseOptions({ ...own, dsn: patient(own.dsn ?? "") }, {}));
      await migrate(client, { isDry: false });
      await client.end();
      return settingsOf;
    },
    in: (settings, text) => server.sql(text, new URL(settings.dsn ?? "").pathname.slice(1)),
    async as(role, work) {
      const client = await connect(role === null ? options() : options(role));
      try {
        return await work(client);
      } finally {
        await client.end();
      }
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
  await database.as(null, (client) => migrate(client, { isDry: false }));
  return database;
}
