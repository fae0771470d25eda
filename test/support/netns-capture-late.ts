/**
 * Runs in a namespace with a device: opens a capture on it, and adds an address to this machine while the table is being made.
 * Prints what the set of local networks holds in the end.
 */
import { execFileSync } from "node:child_process";
import { openCapture } from "#capture/index.ts";
import type { TunAddress } from "#core/capture.ts";
import { SILENT } from "#core/log.ts";
import { findLink, openNetlink } from "#platform/netlink.ts";
import { captureOptions } from "./capture-options.ts";
import { until } from "./until.ts";

const [name = ""] = process.argv.slice(2);
const LATE = "192.0.2.0/24";
using socket = openNetlink("test");
const opening = openCapture(
  {
    device: { name, index: findLink(socket, name)?.index ?? 0 },
    inet4: { address: { ip: "198.18.0.1", bits: 30 }, next: "198.18.0.2" } as TunAddress,
    inet6: null,
    options: captureOptions(),
    redirectPort: 7000,
    routeSet: null,
    routeExcludeSet: null,
    ipv6: false,
    hijackDns: false,
  },
  { log: SILENT },
);
execFileSync("ip", ["address", "add", "192.0.2.77/24", "dev", "lo"]);
await using _ = await opening;
const shown = () =>
  execFileSync("nft", ["list", "set", "inet", "svc", "inet4_local_address_set"], { encoding: "utf8" });
await until("the late network is in the set", async () => shown().includes(LATE));
console.log("it is");
