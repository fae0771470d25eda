/** `npm run probe -- [count] [server] [how many are held]`: what unauthenticated clients could learn from our servers. Ends with 1 where they could. */
import { differences, type Finding, probeServer } from "./probe.ts";
import { servers } from "./servers.ts";

const [countText = "1000", only = "", heldText = "100"] = process.argv.slice(2);
const count = Number(countText);
/** Silent servers keep each probe for a minute, all at the same time. 0: that is left out. */
const held = Math.min(count, Number(heldText));
const found: string[] = [];

function show(findings: readonly Finding[]): void {
  for (const { server, kind, count: made, answers, medianMs } of findings)
    console.log(`| ${server} | ${kind} | ${made} | ${answers.join(", ")} | ${medianMs.toFixed(2)} |`);
}

console.log("| Server | Client | Probes | Answers | Median ms to close |\n|---|---|---|---|---|");
for (const probed of await servers()) {
  if (!probed.name.includes(only)) continue;
  const findings = await probeServer(probed, count, false);
  show(findings);
  found.push(...differences(findings, 0.1));
  if (!probed.silent || held === 0) continue;
  const silent = (await probeServer(probed, held, true)).map((one) => ({
    ...one,
    server: `${one.server}, held`,
  }));
  show(silent);
  found.push(...differences(silent, 0.1));
}
for (const line of found) console.log(`DIFFERS ${line}`);
console.log(found.length === 0 ? "nothing to tell them apart" : `${found.length} differences`);
process.exit(found.length === 0 ? 0 : 1);
