/**
 * `npm run prove:mixed -- [MINUTES] [HOSTILE]`: so many minutes (30) of reloads every 5 s, changes of a TUN, refreshed providers,
 * an API that is polled and HOSTILE clients a minute (20,000), beside honest ones whose times in quiet are measured first. The
 * TUN is left out without root; with it the whole runs in a network namespace. Ends with 1 where an honest client failed,
 * descriptors or memory grow from the second quarter to the last or descriptors stay, or p99 is more than 3 × that of quiet.
 */
import { spawnSync } from "node:child_process";
import { proveMixed, shownMixed } from "../test/proofs/mixed-load.ts";

const MOST_SLOWER = 3;
const MOST_GROWTH = 1.1;
const [minutes = 30, hostileAMinute = 20_000, inside = 0] = process.argv.slice(2).map(Number);

if (inside === 0 && process.platform === "linux" && process.getuid?.() === 0) {
  const self = [process.execPath, ...process.execArgv, import.meta.filename];
  const { status } = spawnSync("unshare", ["-n", ...self, String(minutes), String(hostileAMinute), "1"], {
    stdio: "inherit",
  });
  process.exitCode = status ?? 1;
} else {
  if (inside === 1) spawnSync("ip", ["link", "set", "lo", "up"]);
  const loadMs = minutes * 60_000;
  const plan = { quietMs: Math.max(10_000, loadMs / 10), loadMs, hostileAMinute, reloadEveryMs: 5_000 };
  const found = await proveMixed({ ...plan, tun: inside === 1 });
  console.log(shownMixed(found));
  const [, descriptors = 0, lateDescriptors = 0] = found.descriptors;
  const [, memory = 0, lateMemory = 0] = found.residentMiB;
  const isFlat = lateDescriptors <= descriptors * MOST_GROWTH && lateMemory <= memory * MOST_GROWTH;
  const isSlow = found.loadP99Ms > found.quietP99Ms * MOST_SLOWER;
  if (found.faults.length > 0 || !isFlat || isSlow) process.exitCode = 1;
  process.exit();
}
