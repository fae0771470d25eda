/**
 * `npm run prove:admin -- [kills]`: the program is killed in the middle of changes; of what it had answered no entry of the
 * audit log and no event is lost. 200 kills without an argument. Ends with 1 where anything is not as promised.
 */
import { proveAdminKills, shownAdminKills } from "../test/proofs/admin-kill.ts";
import { randomFrom } from "../test/support/random.ts";

const kills = Number(process.argv[2] ?? 200);
const found = await proveAdminKills(kills, randomFrom(Date.now()), (sofar) =>
  console.log(`… ${shownAdminKills(sofar)}`),
);
for (const line of [shownAdminKills(found), ...found.faults]) console.log(line);
if (found.faults.length > 0) process.exitCode = 1;
