/**
 * `npm run prove:relay -- [SECONDS] [MS] [BUSY] [unlimited|limited|alone]`: what workers and the main thread hand to one
 * another, for so many seconds (60) without a limit, with one, and where workers decide alone (or one of these), each seam between them
 * (src/dataplane/workers/shared/seams.ts) lasting MS (1) each time for its share of them, beside so many busy processes (0). Ends with 1 where the program ends, or has counted anything but what the
 * peers have.
 */
import { spawn } from "node:child_process";
import { SEAMS } from "#dataplane/workers/shared/seams.ts";
import { proveSeams, shownSeams, type Accounting } from "../test/proofs/relay-seams.ts";
import { randomFrom } from "../test/support/random.ts";

const [seconds = 60, seamMs = 1, busy = 0] = process.argv.slice(2, 5).map(Number);
const kinds: readonly Accounting[] = ["unlimited", "limited", "alone"];
const wanted = kinds.filter((kind) => process.argv[5] === undefined || process.argv[5] === kind);
const secondsEach = seconds / (SEAMS.length + 1);
const loops = Array.from({ length: busy }, () => spawn(process.execPath, ["-e", "for (;;);"]));
try {
  for (const accounting of wanted) {
    const found = await proveSeams({ secondsEach, seamMs, accounting, random: randomFrom(Date.now()) });
    console.log([`${accounting}: ${shownSeams(found)}`, ...found.faults].join("\n"));
    if (found.faults.length > 0) process.exitCode = 1;
  }
} finally {
  for (const loop of loops) loop.kill();
}
