/**
 * `npm run prove:relay -- [SECONDS] [MS]`: what relay threads and the main thread hand to one another, for so many seconds
 * (60) without a limit and with one, each seam between them (src/engine/seams.ts) lasting MS (1) each time for its share of
 * them. Ends with 1 where the program ends, or has counted anything but what the peers have.
 */
import { SEAMS } from "#engine/seams.ts";
import { proveSeams, shownSeams } from "../test/proofs/relay-seams.ts";
import { randomFrom } from "../test/support/random.ts";

const [seconds = 60, seamMs = 1] = process.argv.slice(2).map(Number);
const secondsEach = seconds / (SEAMS.length + 1);
for (const limited of [false, true]) {
  const found = await proveSeams({ secondsEach, seamMs, limited, random: randomFrom(Date.now()) });
  console.log([`${limited ? "limited" : "unlimited"}: ${shownSeams(found)}`, ...found.faults].join("\n"));
  if (found.faults.length > 0) process.exitCode = 1;
}
