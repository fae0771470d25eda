/**
 * Runs in a namespace with a device: opens a classifier on it, and adds an address to this machine while the rules on its
 * marks are being made. Prints by how many the prefixes that are passed by have grown.
 */
import { execFileSync } from "node:child_process";
import type { Capture } from "#core/capture.ts";
import { SILENT } from "#core/log.ts";
import { Bypass } from "#kernel-direct/bypass.ts";
import { KernelDirect } from "#kernel-direct/kernel-direct.ts";
import { ownAddresses } from "#net/address/own-address.ts";

const [device = ""] = process.argv.slice(2);
const before = ownAddresses().length;
const nothing = async (): Promise<void> => {};
const capture: Capture = {
  directSet: { change: nothing, replace: nothing },
  updateSets: nothing,
  async steer(marks) {
    if (marks !== null) execFileSync("ip", ["address", "add", "192.0.2.77/24", "dev", "lo"]);
  },
  confirm: nothing,
  leave: nothing,
  [Symbol.asyncDispose]: nothing,
};
await using bypass = await Bypass.open(
  {
    maxEntries: 16,
    fakeRanges: [],
    classifier: {
      required: true,
      interfaces: [device],
      maxEntries: 64,
      flowEntries: 64,
      directMark: 0x4000_0000,
      proxyMark: 0x2000_0000,
      inputMark: 0x2023,
      proxyMode: false,
      redirects: false,
      directPrefixes: [],
      proxyPrefixes: [],
    },
  },
  { device, inbound: { ruleList: null, target: null }, capture, ways: null },
  { learning: new KernelDirect(SILENT), log: SILENT, ownAddresses, networks: () => [] },
);
console.log((bypass.fastPath?.prefixes.bypass ?? 0) - before);
