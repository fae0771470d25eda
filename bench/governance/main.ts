/**
 * `npm run bench:governance`: all measurements of traffic control, or `npm run bench:governance <what> [<budget>]` for
 * one. A budget is what the measurement says it is: flows, seconds, repetitions, damages, kills, rounds. Of `rate` a third
 * word says which cases: those whose line begins with it.
 */
import { cpus, loadavg } from "node:os";
import * as account from "./account.ts";
import * as cost from "./cost.ts";
import * as datagrams from "./datagrams.ts";
import * as damage from "./damage.ts";
import * as kill from "./kill.ts";
import * as quota from "./quota.ts";
import * as rate from "./rate.ts";
import * as relay from "./relay.ts";

interface Measurement {
  run(out: (line: string) => void, budget: number, only?: string): Promise<void>;
  readonly budget: number;
}

const MEASUREMENTS: Readonly<Record<string, Measurement>> = {
  account: { run: account.run, budget: 10_000 },
  rate: { run: rate.run, budget: 10 },
  datagrams: { run: datagrams.run, budget: 10 },
  quota: { run: quota.run, budget: 10 },
  damage: { run: damage.run, budget: 1000 },
  kill: { run: kill.run, budget: 200 },
  cost: { run: cost.run, budget: 300 },
  relay: { run: relay.run, budget: 5 },
};

const [what, budget, only] = process.argv.slice(2);
if (what !== undefined && MEASUREMENTS[what] === undefined) {
  console.error(`${what}: expected one of ${Object.keys(MEASUREMENTS).join(", ")}`);
  process.exit(2);
}
console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "unknown processor"}`);
for (const [name, measurement] of Object.entries(MEASUREMENTS)) {
  if (what !== undefined && what !== name) continue;
  console.log(
    `\n## ${name}, load ${loadavg()
      .map((load) => load.toFixed(1))
      .join(" ")}`,
  );
  await measurement.run((line) => console.log(line), Number(budget ?? measurement.budget), only);
}
