/** Reloads under load interrupt nothing, and descriptors and memory do not grow by them; `npm run prove:reloads` does thousands. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { RELOAD_LOAD, shownReloads, type ReloadFindings, type ReloadKind } from "../proofs/reload-load.ts";
import { skipNetns } from "../support/netns.ts";

const PLANS: readonly { readonly kind: ReloadKind; readonly reloads: number }[] = [
  { kind: "plain", reloads: 30 },
  { kind: "providers", reloads: 30 },
  { kind: "rules", reloads: 10 }, // each reads 20,000 of them

  { kind: "tun", reloads: 30 },
];
/** In so few the heap still finds its size: × 1.04, and × 1.25 with many rules. Single runtimes that stay counts reload-memory.test.ts. */
const MOST_GROWTH = 1.5;

async function measured(kind: ReloadKind, reloads: number): Promise<ReloadFindings> {
  const node = [
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    RELOAD_LOAD,
    kind,
    String(reloads),
  ];
  const [program, ...args] = (kind === "tun" ? ["unshare", "-n", ...node] : node) as [string, ...string[]];
  return JSON.parse((await promisify(execFile)(program, args)).stdout) as ReloadFindings;
}

for (const { kind, reloads } of PLANS) {
  const needs = process.platform === "linux" ? false : "SKIP reloads under load: needs Linux";
  const skip = kind === "tun" ? skipNetns("reloads under load", "unshare") : needs;
  test(`${reloads} reloads under load: ${kind}`, { skip }, async (context) => {
    const found = await measured(kind, reloads);
    context.diagnostic(shownReloads(found));
    assert.deepEqual(found.faults, []);
    assert.ok(found.exchanges > 0);
    const growth = found.lateMiB / found.earlyMiB;
    assert.ok(growth < MOST_GROWTH, `× ${growth}`);
  });
}
