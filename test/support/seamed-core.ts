/** `node seamed-core.ts [flags]`: the program; each SIGWINCH has the next seam of its workers last `SEAM_MS`, and no other. */
import { parseFlags } from "#cli/flags.ts";
import { run } from "#cli/run.ts";
import { RUN_FLAGS } from "#cli/run-flags.ts";
import { newSeamMemory, SEAMS } from "#dataplane/workers/shared/seams.ts";

const memory = newSeamMemory();
const lastsMs = new Int32Array(memory);
let at = -1;
process.on("SIGWINCH", () => {
  at = (at + 1) % SEAMS.length;
  lastsMs.fill(0)[at] = Number(process.env["SEAM_MS"]);
  console.log(`seam: ${SEAMS[at]}`);
});
process.exitCode = await run(parseFlags(process.argv.slice(2), RUN_FLAGS, {}), {}, memory);
