/**
 * `npm run prove:webhooks -- [hour=8000] [setup=40]`: a receiver that is down for an hour (by a shifted clock) while so many
 * events happen gets all of them, in order; and what seven webhooks, five of which fail, cost the set-up of connections, in
 * so many batches with and without them in turn. Ends with 1 where anything is not as promised; the times are for people.
 */
import { proveHourDown, shownHour } from "../test/proofs/webhook-hour.ts";
import { proveSetup, shownSetup } from "../test/proofs/webhook-setup.ts";

const words = process.argv.slice(2);
const budget = (name: string, absent: number): number => {
  const word = words.find((each) => each.startsWith(`${name}=`));
  return word === undefined ? (words.length === 0 ? absent : 0) : Number(word.slice(name.length + 1));
};

const hour = budget("hour", 8_000);
if (hour > 0) {
  const found = await proveHourDown(hour);
  for (const line of [shownHour(found), ...found.faults]) console.log(line);
  if (found.faults.length > 0) process.exitCode = 1;
}
const batches = budget("setup", 40);
if (batches > 0) console.log(shownSetup(await proveSetup(batches)));
