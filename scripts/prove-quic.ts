/**
 * `npm run prove:quic -- [SCHEDULES] [FIRST-SEED]`: transfers over a network inside the process, each with its own delays,
 * losses and damage (10,000), and the goodput of each congestion control at 100 Mbit/s and 50 ms; ends with 1 at the first
 * transfer that stands still or arrives changed.
 */
import { Bbr } from "#transport/quic/congestion/bbr.ts";
import { Brutal } from "#transport/quic/congestion/brutal.ts";
import { Cubic } from "#transport/quic/congestion/cubic.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";
import { fairness, measureGoodput } from "../test/support/quic-goodput.ts";
import { runSchedule } from "../test/support/quic-schedule.ts";

const [schedules = 10_000, firstSeed = 1] = process.argv.slice(2).map(Number);
/** Bytes a millisecond: 100 Mbit/s, and the rate that Brutal is set to. */
const LINK_RATE = 12_500;
const BRUTAL_RATE = 11_000;
const WAY = { delayMs: 25, rate: LINK_RATE, queueBytes: LINK_RATE * 50 };
const CONTROLS = {
  NewReno: () => new NewReno(),
  Cubic: () => new Cubic(),
  BBR: () => new Bbr(),
  "Brutal 88": () => new Brutal(BRUTAL_RATE * 1000),
};
const MBIT = 8 / 1000;

for (const [name, make] of Object.entries(CONTROLS))
  for (const loss of [0, 0.001, 0.01, 0.03, 0.1]) {
    const [rate = 0] = await measureGoodput({
      up: { ...WAY, loss },
      flows: [make],
      fromMs: 3000,
      ms: 10_000,
    });
    console.log(`${name}, ${loss * 100} % lost: ${(rate * MBIT).toFixed(1)} Mbit/s`);
  }
const flows = [CONTROLS.Cubic, CONTROLS.Cubic];
const shares = await measureGoodput({ up: WAY, flows, fromMs: 5000, ms: 30_000 });
console.log(
  `two flows of Cubic: ${shares.map((rate) => (rate * MBIT).toFixed(1)).join(" and ")} Mbit/s, fairness ${fairness(shares).toFixed(3)}`,
);

for (let seed = firstSeed; seed < firstSeed + schedules; seed++) {
  await runSchedule(seed);
  if ((seed - firstSeed + 1) % 1000 === 0) console.log(`${seed - firstSeed + 1} schedules`);
}
