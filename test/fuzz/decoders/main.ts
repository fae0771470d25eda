/**
 * `npm run fuzz -- <executions> [seed] [names]`: hostile input for every decoder, or for those whose name holds one of the
 * given texts (`TLS,REALITY`); ends with a line of what was done.
 */
import { drive } from "./drive.ts";
import { TARGETS } from "./targets.ts";

const ROUND = 250_000;

const [count = "200000", seedText = `${Date.now() % 0x7fff_ffff}`, names = ""] = process.argv.slice(2);
const total = Number(count.replaceAll("_", ""));
const seed = Number(seedText);
const parts = names.split(",");
const targets = TARGETS.filter((target) => parts.some((part) => target.name.includes(part)));
if (!Number.isSafeInteger(total) || total < 1 || !Number.isSafeInteger(seed) || targets.length === 0) {
  console.error("npm run fuzz -- <executions> [seed] [parts of decoders' names, with commas between]");
  process.exit(2);
}
console.log(`${targets.length} decoders, ${total} executions, seed ${seed}`);
let [done, refused, slowestMs, growthBytes] = [0, 0, 0, 0];
const started = performance.now();
for (let round = 0; done < total; round++) {
  const outcome = await drive(targets, Math.min(ROUND, total - done), seed + round);
  done += outcome.executions;
  refused += outcome.refused;
  slowestMs = Math.max(slowestMs, outcome.slowestMs);
  growthBytes = Math.max(growthBytes, outcome.growthBytes);
  const perSecond = Math.round(done / ((performance.now() - started) / 1000));
  console.log(
    `${done} done, ${perSecond}/s, ${refused} refused, growth ${growthBytes >> 20} MiB, slowest over 20 ms of wall: ${slowestMs.toFixed(1)} ms CPU`,
  );
}
