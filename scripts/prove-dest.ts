/**
 * `npm run prove:dest -- [count] [delayMs] [port] [kind]`: what probers see of a REALITY server, held against the site that
 * it stands for. `count` probers of each kind (1000), each by the server and by a plain relay; `delayMs`: to the site and
 * back each way (10), as on a network. `port`: of a site with TLS 1.3 on 127.0.0.1; without it, or with 0, one is made.
 * `kind`: of those probers alone whose name holds it. Ends with 1 where anything differs, or a median of the times by more
 * than a tenth.
 */
import { Tap, visitAs } from "../test/support/probing/dest.ts";
import { realityProbers } from "../test/support/probing/reality-probers.ts";
import { forkReality } from "../test/support/probing/reality-process.ts";
import { openSite } from "../test/support/reality.ts";
import { until } from "../test/support/until.ts";

const APART = 0.1;
const HANDSHAKE_TIMEOUT_MS = 1000;

const [countText = "1000", delayText = "10", portText = "", wanted = ""] = process.argv.slice(2);
const count = Number(countText);
const turns = Array.from({ length: count }, (_, turn) => turn);
const own = await openSite({ handshakeTimeout: HANDSHAKE_TIMEOUT_MS });
const tap = await Tap.open(Number(portText) || own.port, Number(delayText));
const { server, relay, child } = await forkReality(tap.port);
await until("the site was asked in advance", () => tap.count === 1);

const apart = ([seen, expected]: readonly [number, number]): number =>
  Number.isNaN(expected) ? 0 : Math.abs(seen - expected) / expected;
const shown = ([seen, expected]: readonly [number, number]): string =>
  Number.isNaN(expected) ? "–" : `${seen.toFixed(2)} / ${expected.toFixed(2)}`;

let isGood = true;
console.log(
  "| Prober | Visits | Differences | First byte, ms (server / relay) | End, ms |\n|---|---|---|---|---|",
);
for (const kind of await realityProbers()) {
  if (!kind.name.includes(wanted)) continue;
  const found = await visitAs({ server, relay, tap }, kind, turns);
  const { differences, firstMs, closedMs } = found;
  console.log(
    `| ${found.kind} | ${found.count} | ${differences.length} | ${shown(firstMs)} | ${shown(closedMs)} |`,
  );
  for (const text of differences.slice(0, 5)) console.log(`DIFFERS ${found.kind}: ${text}`);
  isGood &&= differences.length === 0 && Math.max(apart(firstMs), apart(closedMs)) <= APART;
}
console.log(isGood ? "nothing to tell them apart" : "they can be told apart");
child.kill();
process.exit(isGood ? 0 : 1);
