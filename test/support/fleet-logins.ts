/** Logins at a fleet's database that speak to it as nodes do, and as no node does. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Client, QueryResultRow } from "pg";
import { connect } from "#fleet/connection.ts";
import { publishListener } from "#fleet/listeners.ts";
import { TokenSeal } from "#fleet/seal.ts";
import { databaseOptions } from "#fleet/source.ts";
import type { UserBook } from "#users/user-book.ts";
import { type FleetDatabase, patient } from "./fleet.ts";
import { aBook } from "./fleet-users.ts";

export const SEAL = new TokenSeal("s".repeat(32));

export interface Entry {
  readonly seq: number;
  readonly user: string;
  readonly upload: number | string;
  readonly download?: number | string;
  readonly generation?: number;
  readonly ageMs?: string;
}

/** An enrolled node, by its own connection. */
export class LoginNode {
  readonly client: Client;
  readonly id: string;
  readonly instance = randomUUID();
  readonly name: string;

  constructor(client: Client, name: string, id: string = randomUUID()) {
    this.client = client;
    this.name = name;
    this.id = id;
  }

  async rows<Row extends QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return (await this.client.query<Row>(text, [...values])).rows;
  }

  async one(text: string, values: readonly unknown[] = []): Promise<unknown> {
    const [row] = await this.rows(text, values);
    return Object.values(row ?? {})[0];
  }

  enroll(epoch = 1, { address = "", labels = {} } = {}): Promise<unknown> {
    return this.one("SELECT weir.enroll($1, $2, $3, $4, '0', $5, $6)", [
      this.id,
      this.name,
      address,
      labels,
      epoch,
      this.instance,
    ]);
  }

  beat(applied: object = {}, links: object | null = null): Promise<unknown> {
    return this.one("SELECT weir.beat($1, $2, $3, $4, $5)", [
      this.id,
      this.instance,
      applied,
      links,
      { connections: 0 },
    ]);
  }

  async upload(entries: readonly Entry[], { epoch = 1, after = 0 } = {}): Promise<number> {
    const column = <T>(of: (entry: Entry) => T): readonly T[] => entries.map(of);
    const received = await this.one("SELECT weir.upload($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", [
      this.id,
      this.instance,
      epoch,
      after,
      column(({ seq }) => String(seq)),
      column(({ user }) => user),
      column(({ generation = 1 }) => generation),
      column(({ ageMs = "0" }) => ageMs),
      column(() => 1),
      column(({ upload }) => upload),
      column(({ download = 0 }) => download),
    ]);
    return Number(received);
  }

  leases(users: readonly string[], wanted = 1_000_000) {
    return this.rows<{ user_id: string; granted: string | null }>(
      "SELECT * FROM weir.take_leases($1, $2, $3, $4, $5)",
      [this.id, this.instance, users, users.map(() => 1), users.map(() => wanted)],
    );
  }

  slots(rows: readonly { user: string; ip: string; count: number }[], isWhole = false) {
    return this.rows<{ user_id: string; most: number | null; ips: string[]; connections: number }>(
      "SELECT * FROM weir.hold_slots($1, $2, $3, $4, $5, $6, $7)",
      [
        this.id,
        this.instance,
        isWhole,
        rows.map(({ user }) => user),
        rows.map(({ ip }) => ip),
        rows.map(({ count }) => count),
        rows.map(() => 0),
      ],
    );
  }

  async totalOf(user: string): Promise<number> {
    const rows = await this.rows<{ user_id: string; upload: string }>("SELECT * FROM weir.totals(-1)");
    return Number(rows.find(({ user_id: id }) => id === user)?.upload ?? 0);
  }
}

export interface Logins extends AsyncDisposable {
  readonly edge: UserBook;
  readonly side: UserBook;
  readonly alice: string;
  readonly bob: string;
  /** Sees both listeners. */
  readonly honest: LoginNode;
  /** Sees `side`, and may change nothing. */
  readonly mallory: LoginNode;
  readonly owner: Client;
  /** Another connection of a login. */
  open(role: string | null): Promise<Client>;
}

/** Listeners `edge` with alice and `side` with bob, and nodes of two logins; roles are those of the server. */
export async function openLogins(database: FleetDatabase): Promise<Logins> {
  const settings = await database.fresh();
  const stack = new AsyncDisposableStack();
  const open = async (role: string | null): Promise<Client> => {
    const own = role === null ? settings("test") : settings("test", role);
    const client = await connect(databaseOptions({ ...own, dsn: patient(own.dsn ?? "") }, {}));
    stack.defer(() => client.end());
    return client;
  };
  const owner = await open(null);
  await owner.query(
    "SELECT weir.allow('honest', '{edge,side}', false), weir.allow('mallory', '{side}', false)",
  );
  const edge = aBook("edge", "alice");
  const side = aBook("side", "bob");
  for (const book of [edge, side])
    await publishListener(owner, book, { node: "test", seal: SEAL, traffic: new Map() });
  const honest = new LoginNode(await open("honest"), "honest");
  const mallory = new LoginNode(await open("mallory"), "mallory");
  for (const node of [honest, mallory]) assert.equal(await node.enroll(), null);
  const [alice = "", bob = ""] = [...edge.users.keys(), ...side.users.keys()];
  const end = () => stack.disposeAsync();
  return { edge, side, alice, bob, honest, mallory, owner, open, [Symbol.asyncDispose]: end };
}

/** The roles of `openLogins`, and a login that is no node. */
export function makeLogins(database: FleetDatabase): void {
  for (const name of ["honest", "mallory"])
    database.server.sql(`CREATE ROLE ${name} LOGIN PASSWORD '${name}' IN ROLE weir_node`);
  database.server.sql("CREATE ROLE passerby LOGIN PASSWORD 'passerby'");
}
