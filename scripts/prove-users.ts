/**
 * `npm run prove:users -- [name=budget …]`: what is promised of managed users, at full length. Without arguments all of
 * it; `revoke=500` users a carrier, `kill=500` ends in the middle of changes, `damage=1000` damaged files, `count=1000`
 * flows a carrier, `sub=1000` questions of each kind, `crash=50` ends in the middle of traffic. The tests in test/integration run the same, shorter.
 */
import { proveCounts, proveCrashes, shownCounts, shownCrashes } from "../test/proofs/users-count.ts";
import { proveDamage, shownDamage } from "../test/proofs/users-damage.ts";
import { proveKills, shownKills } from "../test/proofs/users-kill.ts";
import { proveRevocation, shownRevocation } from "../test/proofs/users-revoke.ts";
import { randomFrom } from "../test/support/random.ts";
import { proveSilence, shownSilence } from "../test/proofs/users-sub.ts";
import { ANYTLS, CARRIERS } from "../test/support/user-traffic.ts";

interface Proof {
  readonly budget: number;
  run(budget: number): AsyncGenerator<string>;
}

/** Rounds of changes a carrier: four revocations each, three with AnyTLS. */
const ROUNDS = 40;
const random = randomFrom(Date.now());

const PROOFS: Readonly<Record<string, Proof>> = {
  revoke: {
    budget: 500,
    async *run(users) {
      for (const carrier of CARRIERS)
        yield shownRevocation(await proveRevocation(carrier, { users, rounds: ROUNDS }));
    },
  },
  kill: {
    budget: 500,
    async *run(kills) {
      const found = await proveKills(kills, random, (sofar) => console.log(`… ${shownKills(sofar)}`));
      yield [shownKills(found), ...found.faults].join("\n");
    },
  },
  damage: {
    budget: 1000,
    async *run(rounds) {
      const found = await proveDamage(rounds, random);
      yield [shownDamage(found), ...found.faults].join("\n");
    },
  },
  count: {
    budget: 1000,
    async *run(flows) {
      for (const carrier of CARRIERS) yield shownCounts(await proveCounts(carrier, flows, random));
    },
  },
  sub: {
    budget: 1000,
    async *run(times) {
      yield shownSilence(await proveSilence(times));
    },
  },
  crash: {
    budget: 50,
    async *run(kills) {
      yield shownCrashes(await proveCrashes(ANYTLS, kills, random));
    },
  },
};

const wanted = process.argv.slice(2).map((argument) => argument.split("="));
for (const [name] of wanted)
  if (PROOFS[name as string] === undefined)
    throw new Error(`unknown: ${name}; there are ${Object.keys(PROOFS).join(", ")}`);
for (const [name, { budget, run }] of Object.entries(PROOFS)) {
  const asked = wanted.find(([one]) => one === name);
  if (wanted.length > 0 && asked === undefined) continue;
  console.log(`## ${name}`);
  for await (const line of run(Number(asked?.[1] ?? budget))) console.log(line);
}
