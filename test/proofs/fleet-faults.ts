/**
 * A node changes users and counts traffic while the connection to its database is delayed, cut at any byte, swallowed or reset:
 * what was acknowledged is there, what was not is there whole or not at all, no ledger entry is lost or doubled, and nothing
 * takes longer than the time-outs.
 */
import assert from "node:assert/strict";
import type { Client } from "pg";
import { ApiError } from "#core/errors.ts";
import type { UserDetailView } from "#core/users.ts";
import { connect } from "#fleet/connection.ts";
import { databaseOptions } from "#fleet/source.ts";
import type { FleetSettings } from "#users/fleet-settings.ts";
import { type FleetDatabase, patient } from "../support/fleet.ts";
import { type Fault, openPostgresProxy, type PostgresProxy } from "../support/postgres-proxy.ts";
import { until } from "../support/until.ts";
import { Bench, listener, METER } from "../support/users-bench.ts";

type Random = (below: number) => number;

export interface FaultFindings {
  readonly schedules: number;
  /** Those in which the fault met bytes. */
  readonly happened: number;
  readonly acknowledged: number;
  /** Changes without an answer that were made all the same. */
  readonly unanswered: number;
  /** The longest that a change took, in ms. */
  readonly longestMs: number;
  readonly faults: readonly string[];
}

/** Longer than the default: on a busy machine a handshake takes its time, which is no fault of the node's. */
const CONNECT_S = 10;
/** Two statements of 3.5 s at most, and the connections that they may need first. */
const MOST_MS = 2 * (3_500 + CONNECT_S * 1_000) + 3_000;
/** What a change is, up and down, with the connection that it may need first. */
const MOST_BYTES = 3_000;
const KINDS = ["cut", "cut", "cut", "cut", "reset", "reset", "delay", "delay", "blackhole"] as const;
const LATE_MS = 120_000;

export async function proveFaults(
  database: FleetDatabase,
  schedules: number,
  random: Random,
  said: (found: FaultFindings) => void = () => {},
): Promise<FaultFindings> {
  const settings = (await database.fresh())("fra-1");
  await using proxy = await openPostgresProxy(database.server.port);
  const dsn = settings.dsn?.replace(`:${database.server.port}/`, `:${proxy.port}/`) ?? "";
  using bench = new Bench({ fleet: { ...settings, dsn: `${dsn}?connect_timeout=${CONNECT_S}` } });
  await bench.adopt([listener("edge", "alice")]);
  const isThere = () =>
    bench.admin.fleet?.seen.database.isUp === true && bench.admin.users("edge").length > 0;
  await until("the users from the database", isThere, { withinMs: LATE_MS });
  const truth = await connect(databaseOptions({ ...settings, dsn: patient(settings.dsn ?? "") }, {}));
  try {
    const prover = new Prover(bench, proxy, truth, random);
    for (let at = 0; at < schedules; at++) {
      await prover.schedule(at);
      if (at % 50 === 49) said(prover.found(at + 1));
    }
    await prover.settle(settings, database);
    return prover.found(schedules);
  } finally {
    await truth.end();
  }
}

export function shownFaults(found: FaultFindings): string {
  const { schedules, happened, acknowledged, unanswered, longestMs, faults } = found;
  return (
    `${schedules} schedules, ${happened} faults met bytes; ${acknowledged} changes acknowledged, ` +
    `${unanswered} made without an answer, longest ${longestMs.toFixed(0)} ms; ${faults.length} wrong`
  );
}

/** What a change may have changed, as the database and the node have it. */
interface Known {
  readonly name: string;
  readonly enabled: boolean;
  readonly credential: string;
  readonly generation: number;
}

class Prover {
  readonly #bench: Bench;
  readonly #proxy: PostgresProxy;
  readonly #truth: Client;
  readonly #random: Random;
  readonly #faults: string[] = [];
  #happened = 0;
  #acknowledged = 0;
  #unanswered = 0;
  #longestMs = 0;
  #moved = 0;

  constructor(bench: Bench, proxy: PostgresProxy, truth: Client, random: Random) {
    this.#bench = bench;
    this.#proxy = proxy;
    this.#truth = truth;
    this.#random = random;
  }

  found(schedules: number): FaultFindings {
    return {
      schedules,
      happened: this.#happened,
      acknowledged: this.#acknowledged,
      unanswered: this.#unanswered,
      longestMs: this.#longestMs,
      faults: this.#faults,
    };
  }

  async schedule(at: number): Promise<void> {
    const before = await this.#users();
    const kind = KINDS[this.#random(KINDS.length)] ?? "cut";
    const way = this.#random(2) === 0 ? "up" : "down";
    const fault: Fault = { kind, way, after: this.#random(MOST_BYTES), delayMs: this.#random(1500) };
    const what = `${at}: ${kind} behind ${fault.after} bytes ${way}`;
    this.#proxy.arm(fault);
    this.#move();
    const startedMs = performance.now();
    const change = this.#change(before);
    const answer = await change.done.then(
      (user) => user,
      (error: unknown) => {
        if (error instanceof ApiError && [404, 409, 503].includes(error.status)) return error;
        this.#faults.push(`${what}: ${String(error)}`);
        return null;
      },
    );
    const tookMs = performance.now() - startedMs;
    this.#longestMs = Math.max(this.#longestMs, tookMs);
    if (tookMs > MOST_MS) this.#faults.push(`${what}: it took ${tookMs.toFixed(0)} ms`);
    if (this.#proxy.heal()) this.#happened++;
    await this.#compare(what, { before, change, answer });
  }

  /** All that was counted is in the ledger, once. */
  async settle(settings: FleetSettings, database: FleetDatabase): Promise<void> {
    const total = () => Number(database.in(settings, "SELECT coalesce(sum(upload), 0) FROM weir.ledger_sum"));
    database.in(
      settings,
      `CREATE VIEW weir.ledger_sum AS SELECT
         (SELECT coalesce(sum(upload), 0) FROM weir.usage_total) +
         (SELECT coalesce(sum(l.upload), 0) FROM weir.ledger l LEFT JOIN weir.ledger_folded f USING (node_id, epoch)
          WHERE l.seq > coalesce(f.seq, 0)) AS upload`,
    );
    await until(
      () => `the ledger has ${total()} of ${this.#moved}`,
      () => total() >= this.#moved,
      { withinMs: LATE_MS },
    );
    if (total() !== this.#moved) this.#faults.push(`the ledger has ${total()}, ${this.#moved} were moved`);
  }

  /** Of the first user, who is never deleted. */
  #move(): void {
    const alice = this.#bench.admin.users("edge").find(({ name }) => name === "alice");
    assert.ok(alice !== undefined);
    const bytes = 1 + this.#random(5000);
    using meter = this.#bench.meterOf(alice.id, { ...METER, reserve: () => 0 });
    meter.reserve("upload", bytes);
    this.#moved += bytes;
  }

  #change(before: ReadonlyMap<string, Known>): Change {
    const { admin } = this.#bench;
    const revision = this.#bench.revision("edge");
    const others = [...before].filter(([, { name }]) => name !== "alice");
    const [id = "", known] = others[this.#random(Math.max(1, others.length))] ?? [];
    const name = `user ${this.#random(1e9)}`;
    const kind = known === undefined || others.length < 3 ? 0 : this.#random(4);
    if (known === undefined || kind === 0)
      return { id: null, after: { name }, done: admin.create({ inbound: "edge", name, revision }) };
    if (kind === 1) return { id, after: null, done: admin.remove(id, revision).then(() => null) };
    if (kind === 2)
      return {
        id,
        after: { name, enabled: !known.enabled },
        done: admin.update(id, { revision, name, enabled: !known.enabled }),
      };
    return { id, after: { generation: known.generation + 1 }, done: admin.resetTraffic(id, revision) };
  }

  async #compare(
    what: string,
    { before, change, answer }: { before: ReadonlyMap<string, Known>; change: Change; answer: Answer },
  ): Promise<void> {
    // A statement that was cut off may still be running: it ends, or its connection is seen to be gone.
    await this.#agreed(what);
    const after = await this.#users();
    const isMade = change.id === null ? after.size > before.size : !isSame(before, after);
    const isAcknowledged = !(answer instanceof ApiError);
    if (isAcknowledged) this.#acknowledged++;
    else if (isMade) this.#unanswered++;
    if (isAcknowledged && !isMade) this.#faults.push(`${what}: acknowledged and lost`);
    if (isMade) this.#lookInto(what, { before, after, change });
    const { rows } = await this.#truth.query<{ broken: string }>(
      `SELECT (SELECT count(*) FROM weir.change) - (SELECT count(*) FROM weir.audit) +
         (SELECT count(*) FROM weir.listener l WHERE l.revision <> (SELECT max(c.revision) FROM weir.change c)) AS broken`,
    );
    if (rows[0]?.broken !== "0") this.#faults.push(`${what}: half a change is there`);
  }

  /** Every other user is as before, and the one is as the change says. */
  #lookInto(
    what: string,
    {
      before,
      after,
      change,
    }: { before: ReadonlyMap<string, Known>; after: ReadonlyMap<string, Known>; change: Change },
  ): void {
    for (const [id, known] of after) {
      const was = before.get(id);
      const isIt = change.id === null ? was === undefined : id === change.id;
      const expected = isIt ? { ...known, ...change.after } : was;
      if (JSON.stringify(known) !== JSON.stringify(expected))
        this.#faults.push(`${what}: user ${id} is wrong`);
    }
    for (const id of before.keys())
      if (!after.has(id) && !(id === change.id && change.after === null))
        this.#faults.push(`${what}: user ${id} is gone`);
  }

  /** The node has what the database has. */
  async #agreed(what: string): Promise<void> {
    const same = async (): Promise<boolean> => {
      const { rows } = await this.#truth.query<{ revision: string }>("SELECT revision FROM weir.listener");
      const isUp = this.#bench.admin.fleet?.seen.database.isUp === true;
      return isUp && Number(rows[0]?.revision) === this.#bench.revision("edge");
    };
    const stand = () => `${what}: agreement; ${this.#bench.admin.fleet?.seen.database.reason ?? ""}`;
    await until(stand, same, { withinMs: LATE_MS });
    const here = this.#bench.admin.users("edge").map(({ id }) => id);
    const there = [...(await this.#users()).keys()];
    if (here.sort().join() !== there.sort().join()) this.#faults.push(`${what}: the node has other users`);
  }

  async #users(): Promise<ReadonlyMap<string, Known>> {
    const { rows } = await this.#truth.query<Known & { readonly id: string }>(
      "SELECT id, name, enabled, credential, generation FROM weir.app_user ORDER BY id",
    );
    return new Map(rows.map(({ id, ...known }) => [id, known]));
  }
}

type Answer = UserDetailView | ApiError | null;

interface Change {
  /** Null: a new user. */
  readonly id: string | null;
  /** Null: the user is gone. */
  readonly after: Partial<Known> | null;
  readonly done: Promise<UserDetailView | null>;
}

function isSame(a: ReadonlyMap<string, Known>, b: ReadonlyMap<string, Known>): boolean {
  return JSON.stringify([...a]) === JSON.stringify([...b]);
}
