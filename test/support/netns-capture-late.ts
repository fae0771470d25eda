/**
 * Runs in a namespace with a device: opens a capture on it, and adds an address to this machine while the table is being made.
 * Prints what the set of local networks holds in the end.
 */
import { execFileSync } from "node:child_process";
import { Guard, openCapture, Ownership } from "#capture/index.ts";
import { Nftables } from "#platform/nftables.ts";
import { SILENT } from "#core/log.ts";
import { findLink, openNetlink } from "#platform/netlink.ts";
import { capturePlan } from "./capture-options.ts";
import { until } from "./until.ts";

const [name = ""] = process.argv.slice(2);
const LATE = "192.0.2.0/24";
using socket = openNetlink("test");
const device = { name, index: findLink(socket, name)?.index ?? 0 };
const nftables = new Nftables();
const ownership = new Ownership();
const guard = new Guard(nftables, SILENT, ownership);
const opening = openCapture(capturePlan({ device }), { nftables, guard, ownership, log: SILENT });
execFileSync("ip", ["address", "add", "192.0.2.77/24", "dev", "lo"]);
await using _ = await opening;
const shown = () =>
  execFileSync("nft", ["list", "set", "inet", "svc", "inet4_local_address_set"], { encoding: "utf8" });
await until("the late network is in the set", async () => shown().includes(LATE));
console.log("it is");
