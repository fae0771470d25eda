/**
 * `npm run prove:changes -- [ROUNDS] [MS]`: a choice, modes, rules that are switched off and reloads in so many rounds (1,000)
 * with four workers under load, each seam between the threads (src/dataplane/workers/shared/seams.ts) lasting MS (0) for its
 * share of them; a line for each hundred. Ends with 1 where a connection behind the answer of a change was decided by what was
 * before it.
 */
import { proveChanges, shownChanges } from "../test/proofs/changes-hold.ts";

const AT_A_TIME = 100;

const [wanted = 1000, seamMs = 0] = process.argv.slice(2).map(Number);
for (let left = wanted; left > 0 && process.exitCode === undefined; left -= AT_A_TIME) {
  const found = await proveChanges({ rounds: Math.min(left, AT_A_TIME), seamMs });
  console.log([shownChanges(found), ...found.faults].join("\n"));
  if (found.faults.length > 0) process.exitCode = 1;
}
