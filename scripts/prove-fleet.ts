/**
 * `npm run prove:fleet -- [name=budget …]`: what is promised of a fleet, at full length. Without arguments all of it;
 * `faults=1000` schedules of what networks do between a node and its database, `ledger=20` seconds of uploads by 20 nodes,
 * `start=10000` users, `revoke=20` nodes with 10,000 users, `path=10` rounds of bytes and connections with and without a fleet,
 * `admin` the tests of the admin API on one node while another one watches, `kill=30` minutes of nodes and a database that are killed, `partition=10` minutes without the database. Needs PostgreSQL on
 * this machine. Ends with 1 where anything is not as promised.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { proveFaults, shownFaults, type FaultFindings } from "../test/proofs/fleet-faults.ts";
import { proveFleetKills, shownFleetKills } from "../test/proofs/fleet-kill.ts";
import { proveLedger, shownLedger } from "../test/proofs/fleet-ledger.ts";
import { provePartition, shownPartition } from "../test/proofs/fleet-partition.ts";
import { provePath, ratioOf, shownPath } from "../test/proofs/fleet-path.ts";
import { proveFleetRevoke, shownRevoke } from "../test/proofs/fleet-revoke.ts";
import { proveStart, shownStart } from "../test/proofs/fleet-start.ts";
import { type FleetDatabase, startFleetDatabase } from "../test/support/fleet.ts";
import { type BesideDatabase, FLEET_VARIABLE } from "../test/support/fleet-beside.ts";
import { quantile } from "../test/support/slow-clients.ts";
import { randomFrom } from "../test/support/random.ts";

interface Finding {
  readonly text: string;
  /** Is everything as promised? */
  readonly isGood: boolean;
}

interface Proof {
  readonly budget: number;
  run(database: FleetDatabase, budget: number): Promise<Finding>;
}

/** Most of a schedule is waiting. */
const FAULTS_AT_ONCE = 4;
const USERS = 10_000;
const REVOCATIONS = 100;
const MOST_START_MS = 3_000;
const CUT_MS = { p50: 150, p99: 1_000 };
const CHANGE_P99_MS = 30;
const ROWS_PER_SECOND = 20_000;
const LEAST_RATIO = 0.97;
const SEED = Date.now() % 2 ** 31;

const PROOFS: Readonly<Record<string, Proof>> = {
  faults: {
    budget: 1000,
    async run(database, schedules) {
      const each = Math.ceil(schedules / FAULTS_AT_ONCE);
      const parts = await Promise.all(
        Array.from({ length: FAULTS_AT_ONCE }, (_, at) => proveFaults(database, each, randomFrom(SEED + at))),
      );
      const all = parts.reduce(joined);
      return { text: [shownFaults(all), ...all.faults].join("\n"), isGood: all.faults.length === 0 };
    },
  },
  ledger: {
    budget: 20,
    async run(database, seconds) {
      const found = await proveLedger(database, { nodes: 20, users: 5_000, seconds });
      return {
        text: shownLedger(found),
        isGood: found.isExact && found.rows / found.seconds >= ROWS_PER_SECOND,
      };
    },
  },
  start: {
    budget: USERS,
    async run(database, users) {
      const found = await proveStart(database, users);
      const { first, again, silent, away } = found;
      return {
        text: shownStart(found),
        isGood: [first, again, silent, away].every(({ servedMs }) => servedMs <= MOST_START_MS),
      };
    },
  },
  revoke: {
    budget: 20,
    async run(database, nodes) {
      const found = await proveFleetRevoke(database, { nodes, users: USERS, rounds: REVOCATIONS });
      const isGood =
        quantile(found.cutMs, 0.5) <= CUT_MS.p50 &&
        quantile(found.cutMs, 0.99) <= CUT_MS.p99 &&
        quantile(found.changeMs, 0.99) <= CHANGE_P99_MS;
      return { text: shownRevoke(found), isGood };
    },
  },
  path: {
    budget: 10,
    async run(database, rounds) {
      const found = await provePath(database, rounds);
      const isGood = [found.bytes, found.connections].every(
        (work) => ratioOf(work, found.background) >= LEAST_RATIO,
      );
      return { text: shownPath(found), isGood };
    },
  },
  kill: {
    budget: 30,
    async run(_, minutes) {
      const found = await proveFleetKills(minutes, randomFrom(SEED), (text) => console.log(`… ${text}`));
      return {
        text: [shownFleetKills(found), ...found.faults].join("\n"),
        isGood: found.faults.length === 0,
      };
    },
  },
  admin: { budget: 1, run: (database) => runAdminTests(database) },
  partition: {
    budget: 10,
    async run(database, minutes) {
      const found = await provePartition(database, minutes);
      return { text: [shownPartition(found), ...found.faults].join("\n"), isGood: found.faults.length === 0 };
    },
  },
};

/** What of the tests changes users by the admin API of one program. */
const ADMIN_TESTS = [
  "admin-api",
  "admin-live",
  "admin-proofs",
  "user-links",
  "user-limits",
  "users-exchange",
];

/** The same tests, each program a node, and its users compared with those of a second node in the end. */
async function runAdminTests({ server }: FleetDatabase): Promise<Finding> {
  const beside: BesideDatabase = { dsn: server.dsn(), ca: server.authority.cert };
  const tests = spawn(process.execPath, ["scripts/run.mjs", "scripts/test.mjs", ...ADMIN_TESTS], {
    env: { ...process.env, [FLEET_VARIABLE]: JSON.stringify(beside) },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const [code] = await once(tests, "exit");
  return {
    text: `tests of the admin API on a node, watched on another: ended with ${code}`,
    isGood: code === 0,
  };
}

function joined(a: FaultFindings, b: FaultFindings): FaultFindings {
  return {
    schedules: a.schedules + b.schedules,
    happened: a.happened + b.happened,
    acknowledged: a.acknowledged + b.acknowledged,
    unanswered: a.unanswered + b.unanswered,
    longestMs: Math.max(a.longestMs, b.longestMs),
    faults: [...a.faults, ...b.faults],
  };
}

const wanted = process.argv.slice(2).map((argument) => argument.split("="));
for (const [name = ""] of wanted)
  if (PROOFS[name] === undefined)
    throw new Error(`unknown: ${name}; there are ${Object.keys(PROOFS).join(", ")}`);
for (const [name, { budget, run }] of Object.entries(PROOFS)) {
  const asked = wanted.find(([one]) => one === name);
  if (wanted.length > 0 && asked === undefined) continue;
  console.log(`## ${name}`);
  await using database = await startFleetDatabase({ isDurable: true });
  const { text, isGood } = await run(database, Number(asked?.[1] ?? budget));
  console.log(isGood ? text : `NOT AS PROMISED: ${text}`);
  if (!isGood) process.exitCode = 1;
}
