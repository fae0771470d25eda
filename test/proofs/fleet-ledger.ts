/** How many ledger rows one PostgreSQL takes: nodes that upload batches as fast as they are answered, while folds run beside. */
import { randomUUID } from "node:crypto";
import type { Client } from "pg";
import { connect } from "#fleet/connection.ts";
import { publishListener } from "#fleet/listeners.ts";
import { TokenSeal } from "#fleet/seal.ts";
import { databaseOptions } from "#fleet/source.ts";
import { aBook } from "../support/fleet-users.ts";
import { type FleetDatabase, patient } from "../support/fleet.ts";

export interface LedgerFindings {
  readonly nodes: number;
  readonly users: number;
  readonly rows: number;
  readonly seconds: number;
  /** With the index. */
  readonly bytesPerRow: number;
  /** Of all processes of the server. */
  readonly cpuSeconds: number;
  /** What is counted, of what was sent. */
  readonly isExact: boolean;
}

const BATCH = 2_000;
const SEAL = new TokenSeal("s".repeat(32));

export async function proveLedger(
  database: FleetDatabase,
  { nodes, users, seconds }: { readonly nodes: number; readonly users: number; readonly seconds: number },
): Promise<LedgerFindings> {
  const settings = await database.fresh();
  await using stack = new AsyncDisposableStack();
  const open = async (): Promise<Client> => {
    const own = settings("x");
    const options = databaseOptions({ ...own, dsn: patient(own.dsn ?? "") }, {});
    const client = await connect({ ...options, statementTimeoutMs: 120_000 });
    stack.defer(() => client.end());
    return client;
  };
  const first = await open();
  const book = aBook("edge", ...Array.from({ length: users }, (_, at) => `user ${at}`));
  await publishListener(first, book, { node: "x", seal: SEAL, traffic: new Map() });
  const ids = [...book.users.keys()];
  const uploaders: Client[] = [];
  for (let at = 0; at < nodes; at++) uploaders.push(await open());
  const folder = await open();
  const cpuBefore = database.server.cpuSeconds();
  const startedMs = performance.now();
  const isOver = () => performance.now() - startedMs >= seconds * 1000;
  const sent = uploaders.map((client, at) => upload(client, `node-${at}`, ids, isOver));
  const folding = fold(folder, isOver);
  const [rowsOf] = await Promise.all([Promise.all(sent), folding]);
  const rows = rowsOf.reduce((sum, one) => sum + one, 0);
  const tookS = (performance.now() - startedMs) / 1000;
  const sum = database.in(settings("x"), "SELECT coalesce(sum(upload), 0) FROM weir.totals(-1)");
  const size = database.in(
    settings("x"),
    "SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'weir.ledger'::regclass",
  );
  return {
    nodes,
    users,
    rows,
    seconds: tookS,
    bytesPerRow: Number(size) / rows,
    cpuSeconds: database.server.cpuSeconds() - cpuBefore,
    isExact: Number(sum) === rows,
  };
}

export function shownLedger(found: LedgerFindings): string {
  const { nodes, users, rows, seconds, bytesPerRow, cpuSeconds, isExact } = found;
  return (
    `${nodes} nodes, ${users} users: ${rows} rows in ${seconds.toFixed(1)} s, ${(rows / seconds).toFixed(0)} rows/s, ` +
    `${(rows / cpuSeconds).toFixed(0)} rows per second of CPU, ${bytesPerRow.toFixed(0)} bytes each; ` +
    (isExact ? "every row is counted once" : "THE TOTAL IS WRONG")
  );
}

/** One byte a row, so that the total is the number of rows. Answers with how many were sent. */
async function upload(
  client: Client,
  name: string,
  ids: readonly string[],
  isOver: () => boolean,
): Promise<number> {
  const [node, instance] = [randomUUID(), randomUUID()];
  await client.query("SELECT weir.enroll($1, $2, '', '{}', '0', 1, $3)", [node, name, instance]);
  let seq = 0;
  while (!isOver()) {
    const seqs = Array.from({ length: BATCH }, (_, at) => seq + at + 1);
    const of = <T>(value: (seq: number) => T): readonly T[] => seqs.map(value);
    await client.query("SELECT weir.upload($1, $2, 1, $3, $4, $5, $6, $7, $8, $9, $10)", [
      node,
      instance,
      seq,
      seqs,
      of((one) => ids[one % ids.length]),
      of(() => 1),
      of(() => 500),
      of(() => 1),
      of(() => 1),
      of(() => 0),
    ]);
    seq += BATCH;
  }
  return seq;
}

async function fold(client: Client, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await client.query("SELECT weir.fold(100000)");
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}
