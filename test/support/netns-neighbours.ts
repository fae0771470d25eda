/** Runs in a namespace: prints what opening the table of its neighbours and asking it costs. */
import { SILENT } from "#core/log.ts";
import { ipOf } from "#net/address/ip.ts";
import { NeighbourTable } from "#net/address/neighbour-table.ts";

const LOOKUPS = 100_000;
const asked = ipOf(process.argv[2] ?? "");
using table = new NeighbourTable(SILENT);
const beganAt = performance.now();
const mac = table.macOf(asked);
const openMs = performance.now() - beganAt;
const { user, system } = process.cpuUsage();
for (let at = 0; at < LOOKUPS; at++) table.macOf(asked);
const used = process.cpuUsage({ user, system });
console.log(JSON.stringify({ mac, size: table.size, openMs, lookupUs: (used.user + used.system) / LOOKUPS }));
