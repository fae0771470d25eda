/**
 * `npm run prove:upgrade -- [upgrades=200 failed=50 lanes=8 transfers=100 users=4 built=no captured=no rest=0]`: so many
 * upgrades of a running weir, and so many that fail at some step, under connections, long transfers and managed users. Ends
 * with 1 where a client was refused or cut, a counter is not what was moved, or two processes had the stores open at once. The
 * tests do some of each. `built=yes`: of the program as people install it. `captured=yes`: weir runs on a router in namespaces
 * and captures a client of its LAN; it is a fault, too, when a packet of that passes it by. `rest`: ms between two upgrades.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DEATHS, FailingLaunchers } from "../test/support/failing-launchers.ts";
import { setTimeout as delay } from "node:timers/promises";
import {
  beginLan,
  CAPTURES,
  endLan,
  LAN_DATAGRAM_LANES,
  runOnRouter,
} from "../test/proofs/upgrade-captured.ts";
import { builtProgram } from "../test/support/built-program.ts";
import { UpgradeWorld } from "../test/support/upgrade-world.ts";

const given = new Map(process.argv.slice(2).map((argument) => argument.split("=") as [string, string]));
const number = (name: string, usual: number): number => Number(given.get(name) ?? usual);
const captured = given.get("captured") === "yes";
if (captured && process.send === undefined)
  process.exit(await runOnRouter(fileURLToPath(import.meta.url), process.argv.slice(2)));

using built = given.get("built") === "yes" ? await builtProgram() : null;
const weir = built?.path ?? fileURLToPath(new URL("../bin/weir", import.meta.url));
const upgrades = number("upgrades", 200);
const restMs = number("rest", 0);
const failed = number("failed", 50);

using launchers = new FailingLaunchers();
await using world = await UpgradeWorld.open(
  {
    lanes: number("lanes", 8),
    pauseMs: number("pause", 0),
    transfers: number("transfers", 100),
    userLanes: number("users", 4),
  },
  { program: weir, sections: captured ? CAPTURES : "" },
);
if (captured) beginLan();
const owners = world.watchOwners();
const file = join(world.core.core.home, "config.yaml");
const text = readFileSync(file, "utf8");
const faults: string[] = [];
const tookMs: number[] = [];
const startedMs = performance.now();
const MOST_PROCESSES = 6;
const SHOWN_EACH = 10;

/** A refused configuration, another program, or a crash at one step after the other. */
async function fail(round: number): Promise<void> {
  const kinds = ["configuration", "/bin/true", ...DEATHS];
  const kind = kinds[round % kinds.length] ?? "start";
  if (kind === "configuration") writeFileSync(file, text.replace("MATCH,DIRECT", "MATCH,NOWHERE"));
  const to = kind === "configuration" ? weir : existsSync(kind) ? kind : launchers.path(kind);
  const { pid } = world;
  const answer = await world.upgrade(to);
  writeFileSync(file, text);
  if (answer.done || world.pid !== pid) faults.push(`${kind}: it was to fail`);
}

for (let made = 0, tried = 0; made < upgrades || tried < failed;) {
  await delay(restMs);
  if (tried < failed && tried * upgrades <= made * failed) {
    await fail(tried++);
    continue;
  }
  const beganMs = performance.now();
  const answer = await world.upgrade(weir);
  tookMs.push(performance.now() - beganMs);
  if (!answer.done) faults.push(`upgrade ${made}: ${answer.reason}`);
  made++;
  if (made % SHOWN_EACH === 0)
    console.log(
      `… ${made} upgrades and ${tried} that failed, ${world.sessions} connections, ${faults.length} faults`,
    );
  if (world.processes().length > MOST_PROCESSES) await world.renewTransfers(number("transfers", 100));
}
const seconds = (performance.now() - startedMs) / 1000;
const most = await owners.stop();
const lan = captured ? { ...(await endLan()), mostDivided: LAN_DATAGRAM_LANES * upgrades } : null;
faults.push(
  ...(lan?.faults ?? []),
  ...(await world.finish()),
  ...(await world.differences(lan ?? undefined)),
);
if (most > 1) faults.push(`${most} processes had the stores open at once`);
const median = tookMs.sort((a, b) => a - b)[Math.floor(tookMs.length / 2)] ?? 0;
const { upload, download } = world.moved;
console.log(
  [
    `${upgrades} upgrades and ${failed} that failed in ${Math.round(seconds)} s`,
    `${world.sessions} connections (${Math.round(world.sessions / seconds)}/s), ${upload + download} bytes`,
    ...(lan === null ? [] : [`captured: ${lan.connections} connections, ${lan.upload + lan.download} bytes`]),
    `an upgrade took ${Math.round(median)} ms (median); ${most} owner of the stores at most`,
    `${faults.length} faults`,
    ...faults,
  ].join("\n"),
);
process.exitCode = faults.length > 0 ? 1 : 0;
