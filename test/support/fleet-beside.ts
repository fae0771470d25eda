/**
 * With WEIR_TEST_FLEET in the environment, every managed core of a test is a node of a fleet, and a second node beside it is asked
 * in the end whether it has the same users: `npm run prove:fleet -- admin`.
 */
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "#fleet/connection.ts";
import { migrate } from "#fleet/migrate.ts";
import { databaseOptions } from "#fleet/source.ts";
import type { FleetSettings } from "#users/fleet-settings.ts";
import { fleetBlock, patient } from "./fleet.ts";
import { startCore } from "./start-core.ts";
import { until } from "./until.ts";

export const FLEET_VARIABLE = "WEIR_TEST_FLEET";

/** What the variable holds, as JSON. */
export interface BesideDatabase {
  /** Of the superuser, with the database `postgres`. */
  readonly dsn: string;
  readonly ca: string;
}

export interface Beside {
  /** The `svc.fleet` block of the test's own node. */
  readonly block: string;
  seed(home: string): void;
  /** Starts the second node, with this configuration but ports of its own. */
  watch(configText: string, folder: string): Promise<Watcher>;
}

export interface Watcher extends AsyncDisposable {
  /** Fails where the second node does not come to have what `url` has. */
  compare(url: string, secret: string): Promise<void>;
}

/** The same store, the same database, so that a restart finds its users. Null: there is no fleet. */
export async function besideOf(store: string | undefined): Promise<Beside | null> {
  const text = process.env[FLEET_VARIABLE];
  if (text === undefined) return null;
  const { dsn, ca }: BesideDatabase = JSON.parse(text);
  const name = `beside_${createHash("sha256")
    .update(store ?? randomUUID())
    .digest("hex")
    .slice(0, 16)}`;
  const of = (node: string): FleetSettings => ({
    dsn: patient(dsn.replace(/\/postgres$/, `/${name}`)),
    dsnFile: null,
    ca,
    node,
    address: "localhost",
    labels: {},
    onPartition: "allow",
  });
  const admin = await connect(databaseOptions({ ...of("x"), dsn: patient(dsn) }, {}));
  const { rowCount } = await admin.query("SELECT FROM pg_database WHERE datname = $1", [name]);
  if (rowCount === 0) await admin.query(`CREATE DATABASE ${name}`);
  await admin.end();
  const client = await connect(databaseOptions(of("x"), {}));
  await migrate(client, { isDry: false });
  await client.end();
  const seed = (home: string): void => writeFileSync(join(home, "ca.pem"), ca);
  return {
    block: fleetBlock(of("own")),
    seed,
    async watch(configText, folder) {
      const theirs = configText
        .replaceAll(/\bport: \d+/g, "port: 0")
        .replace(/^( *)store: .*$/m, "$1store: beside.db")
        .replace("node: own", "node: beside")
        .replace(/external-controller: .*/, "external-controller: 127.0.0.1:0");
      const core = await startCore(theirs, { seed, env: { SAFE_PATHS: folder } });
      const base = `http://127.0.0.1:${await core.controllerPort()}`;
      return {
        async compare(url, secret) {
          const said = { own: "", beside: "" };
          const isSame = async (): Promise<boolean> => {
            said.own = await usersAt(url, secret);
            said.beside = await usersAt(base, secret);
            return said.own === said.beside || said.own === "";
          };
          await until(() => `the same users:\n${said.own}\n${said.beside}`, isSame, { withinMs: 60_000 });
        },
        [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
      };
    },
  };
}

/** What a change can have changed; "": the node does not answer, or manages nothing. */
async function usersAt(url: string, secret: string): Promise<string> {
  const answer = await fetch(`${url}/api/admin/users`, {
    headers: { authorization: `Bearer ${secret}` },
  }).catch(() => null);
  if (answer?.status !== 200) return "";
  const { users } = (await answer.json()) as { users: readonly Record<string, unknown>[] };
  assert.ok(Array.isArray(users));
  const names = ["id", "inbound", "name", "flow", "enabled", "traffic_generation", "revision", "expires_at"];
  return users.map((user) => names.map((name) => String(user[name])).join(" ")).join("\n");
}
