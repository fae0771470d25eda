/**
 * `npm run prove:reloads -- [plain=2000 tun=2000 providers=2000 rules=2000]`: so many reloads of each kind of configuration,
 * one kind after the other, under transfers, connections and an API that is polled. With an argument only what is named. A TUN
 * needs root. Ends with 1 where anything was interrupted, descriptors stay, or the last tenth takes more than 1.05 of the
 * memory of the second. The tests do some dozens.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import {
  RELOAD_KINDS,
  RELOAD_LOAD,
  shownReloads,
  type ReloadFindings,
  type ReloadKind,
} from "../test/proofs/reload-load.ts";

const MOST_GROWTH = 1.05;
const wanted = process.argv.slice(2).map((argument) => argument.split("=") as [ReloadKind, string]);
const plan = wanted.length > 0 ? wanted : RELOAD_KINDS.map((kind) => [kind, "2000"] as const);
for (const [kind, count] of plan) {
  if (!RELOAD_KINDS.includes(kind)) throw new Error(`unknown: ${kind}; there are ${RELOAD_KINDS.join(", ")}`);
  const node = [process.execPath, "--disable-warning=ExperimentalWarning", RELOAD_LOAD, kind, count];
  const [program, ...args] = (kind === "tun" ? ["unshare", "-n", ...node] : node) as [string, ...string[]];
  const { stdout } = await promisify(execFile)(program, args);
  const found = JSON.parse(stdout) as ReloadFindings;
  const growth = found.lateMiB / found.earlyMiB;
  console.log([`${kind}: ${shownReloads(found)}, × ${growth.toFixed(3)}`, ...found.faults].join("\n"));
  if (found.faults.length > 0 || growth > MOST_GROWTH) process.exitCode = 1;
}
