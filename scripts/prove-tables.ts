/**
 * `npm run prove:tables -- [SETS] [SESSIONS] [SEED]`: made-up rule sets and sessions (1,000 × 1,000); ends with 1 at the
 * first that a worker, the tables of another thread, the router and explain do not decide alike.
 */
import { compareTables } from "../test/support/compare-tables.ts";

const [sets = 1000, sessions = 1000, seed = 1] = process.argv.slice(2).map(Number);
const { decided, undecided, byWorkers, named } = await compareTables(sets, sessions, seed);
console.log(
  `${decided} decisions agree, in ${undecided} cases the tables cannot tell; ${byWorkers} sessions with an address and ${named} with a name are a worker's to decide`,
);
