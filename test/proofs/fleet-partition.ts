/** Two nodes lose their database while a user spends a quota on both: what goes beyond it, and whether all is counted after it. */
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "#fleet/connection.ts";
import { databaseOptions } from "#fleet/source.ts";
import type { FleetSettings } from "#users/fleet-settings.ts";
import { type FleetDatabase, patient } from "../support/fleet.ts";
import { openPostgresProxy } from "../support/postgres-proxy.ts";
import { until } from "../support/until.ts";
import { Bench, listener, METER } from "../support/users-bench.ts";

export interface PartitionFindings {
  readonly minutes: number;
  readonly modes: readonly ModeFindings[];
  readonly faults: readonly string[];
}

interface ModeFindings {
  readonly mode: FleetSettings["onPartition"];
  readonly quotaBytes: number;
  /** Lent when the database went away. */
  readonly leasedBytes: number;
  /** Left of the quota then. */
  readonly leftBytes: number;
  /** Moved while it was away, on both. */
  readonly movedBytes: number;
}

const MIB = 1_048_576;
const QUOTA = 200 * MIB;
const PIECE = 256 * 1024;
const PAUSE_MS = 20;
const NODES = 2;
const LATE_MS = 60_000;
const SLOWLY = { everyMs: 100, withinMs: 120_000 };

export async function provePartition(database: FleetDatabase, minutes: number): Promise<PartitionFindings> {
  const faults: string[] = [];
  const modes = await Promise.all(
    (["stop", "overage", "allow"] as const).map((mode) => proveMode(database, mode, { minutes, faults })),
  );
  return { minutes, modes, faults };
}

export function shownPartition({ minutes, modes, faults }: PartitionFindings): string {
  const mib = (bytes: number) => `${(bytes / MIB).toFixed(1)} MiB`;
  const each = modes.map(
    ({ mode, quotaBytes, leasedBytes, leftBytes, movedBytes }) =>
      `${mode}: of ${mib(quotaBytes)} ${mib(leftBytes)} were left and ${mib(leasedBytes)} lent, ${mib(movedBytes)} were moved`,
  );
  return [`${minutes} minutes without the database, ${NODES} nodes; ${faults.length} wrong`, ...each].join(
    "\n",
  );
}

async function proveMode(
  database: FleetDatabase,
  mode: FleetSettings["onPartition"],
  { minutes, faults }: { readonly minutes: number; readonly faults: string[] },
): Promise<ModeFindings> {
  const settings = await database.fresh();
  await using stack = new AsyncDisposableStack();
  const proxies = await Promise.all(
    Array.from({ length: NODES }, () => openPostgresProxy(database.server.port)),
  );
  for (const proxy of proxies) stack.use(proxy);
  const benches = proxies.map(({ port }, at) => {
    const own = settings(`node-${at}`);
    const dsn = own.dsn?.replace(`:${database.server.port}/`, `:${port}/`) ?? "";
    return stack.use(new Bench({ fleet: { ...own, dsn: patient(dsn), onPartition: mode } }));
  });
  for (const [at, bench] of benches.entries())
    await bench.adopt([at === 0 ? listener("edge", "alice") : listener("edge")]);
  const [first] = benches;
  if (first === undefined) throw new Error("no node");
  const isThere = () => benches.every(({ admin }) => admin.users("edge").length > 0);
  await until("the users on all", isThere, SLOWLY);
  const quota = { totalBytes: QUOTA, reset: "never" };
  await first.admin.update(first.first().id, { revision: first.revision("edge"), limits: { quota } });
  await until("the quota on all", () => benches.every((one) => one.first().limits.quota !== null), SLOWLY);
  // By a connection of its own: psql would stop this thread, in which the nodes are.
  const truth = await connect(
    databaseOptions({ ...settings("x"), dsn: patient(settings("x").dsn ?? "") }, {}),
  );
  stack.defer(() => truth.end());
  const sql = async (text: string): Promise<number> => {
    const { rows } = await truth.query<{ value: string }>(`SELECT (${text}) AS value`);
    return Number(rows[0]?.value);
  };
  const leased = () => sql("SELECT coalesce(sum(bytes), 0) FROM weir.lease");
  const counted = () => sql("SELECT coalesce(sum(upload + download), 0) FROM weir.totals(-1)");
  let moved = 0;
  const move = (): void => {
    for (const bench of benches) {
      using meter = bench.meterOf(bench.first().id, { ...METER, admit: () => true });
      if (meter.admit("download", PIECE)) moved += PIECE;
    }
  };
  const spent = async (): Promise<boolean> => {
    move();
    return (await sql("SELECT count(*) FROM weir.lease")) === NODES && moved > 8 * MIB;
  };
  await until("both hold a part, and have spent some", spent, SLOWLY);
  for (const proxy of proxies) proxy.arm({ kind: "blackhole", way: "up", after: 0, delayMs: 0 });
  await until("it is away", () => benches.every(({ admin }) => admin.fleet?.seen.database.isUp === false), {
    withinMs: LATE_MS,
  });
  const [before, leasedBytes] = [moved, await leased()];
  const leftBytes = QUOTA - (await counted());
  for (const endMs = performance.now() + minutes * 60_000; performance.now() < endMs; await sleep(PAUSE_MS))
    move();
  const movedBytes = moved - before;
  for (const proxy of proxies) proxy.heal();
  let sum = 0;
  const isCounted = async (): Promise<boolean> => (sum = await counted()) >= moved;
  await until(() => `all is counted: ${sum} of ${moved}`, isCounted, SLOWLY);
  await sleep(2_000); // what would be counted twice comes
  sum = await counted();
  if (sum !== moved) faults.push(`${mode}: ${sum} bytes are counted, ${moved} were moved`);
  // A node knows what was left when it was answered last: before it had spent what it was lent.
  const overage = NODES * leftBytes + leasedBytes;
  const most = { stop: leasedBytes, overage, allow: Infinity }[mode] + NODES * PIECE;
  if (movedBytes > most) faults.push(`${mode}: ${movedBytes} bytes were moved, ${most} may be`);
  return { mode, quotaBytes: QUOTA, leasedBytes, leftBytes, movedBytes };
}
