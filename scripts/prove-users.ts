/**
 * `npm run prove:users -- [name=budget …]`: what is promised of managed users, at full length. Without arguments all of
 * it; `revoke=500` users a carrier, `reality=500` the same below REALITY, `encryption=500` below VLESS Encryption, `kill=500` ends in the middle of changes, `damage=1000` damaged files, `faults=8` calls of the
 * system of each kind that fail in a change, `count=1000`
 * flows a carrier, `sub=1000` questions of each kind, `crash=50` ends in the middle of traffic. The tests in
 * test/integration run the same, shorter. Ends with 1 where anything is not as promised.
 */
import { proveCounts, proveCrashes, shownCounts, shownCrashes } from "../test/proofs/users-count.ts";
import { proveDamage, shownDamage } from "../test/proofs/users-damage.ts";
import { CALLS, ENDS, proveFaults, shownFaults } from "../test/proofs/store-faults.ts";
import { proveKills, shownKills } from "../test/proofs/users-kill.ts";
import { proveRevocation, shownRevocation } from "../test/proofs/users-revoke.ts";
import { openSite } from "../test/support/reality.ts";
import { encryptionCarriers } from "../test/support/encryption-carriers.ts";
import { realityCarriers } from "../test/support/reality-carriers.ts";
import { randomFrom } from "../test/support/random.ts";
import { proveSilence, shownSilence } from "../test/proofs/users-sub.ts";
import { ANYTLS, type Carrier, CARRIERS } from "../test/support/user-traffic.ts";

interface Proof {
  readonly budget: number;
  run(budget: number): AsyncGenerator<Finding>;
}

interface Finding {
  readonly text: string;
  /** Is everything as promised? */
  readonly isGood: boolean;
}

/** How far the medians of answers to unknown tokens may be apart. */
const APART = 1.1;
/** What a crash may cost of the counters. */
const MOST_LOST_MS = 1_000;

/** Rounds of changes a carrier: four revocations each, three with AnyTLS. */
const ROUNDS = 40;
const random = randomFrom(Date.now());

const PROOFS: Readonly<Record<string, Proof>> = {
  revoke: { budget: 500, run: (users) => revocations(CARRIERS, users) },
  reality: {
    budget: 500,
    async *run(users) {
      await using site = await openSite();
      yield* revocations(realityCarriers(site.port), users);
    },
  },
  encryption: { budget: 500, run: (users) => revocations(encryptionCarriers(), users) },
  kill: {
    budget: 500,
    async *run(kills) {
      const found = await proveKills(kills, random, (sofar) => console.log(`… ${shownKills(sofar)}`));
      yield of(found, withFaults(shownKills), ({ faults }) => faults.length === 0);
    },
  },
  damage: {
    budget: 1000,
    async *run(rounds) {
      const found = await proveDamage(rounds, random);
      yield of(found, withFaults(shownDamage), ({ faults }) => faults.length === 0);
    },
  },
  faults: {
    budget: 8,
    async *run(most) {
      for (const end of ENDS)
        for (const call of CALLS)
          yield of(
            await proveFaults([call], most, end),
            withFaults((found) => `${call}, ${end}: ${shownFaults(found)}`),
            ({ faults }) => faults.length === 0,
          );
    },
  },
  count: {
    budget: 1000,
    async *run(flows) {
      for (const backend of CARRIERS)
        yield of(
          await proveCounts(backend, flows, random),
          shownCounts,
          ({ difference }) => difference === 0,
        );
    },
  },
  sub: {
    budget: 1000,
    async *run(times) {
      yield of(await proveSilence(times), shownSilence, (found) => {
        const medians = found.map(({ medianMs }) => medianMs);
        const answers = new Set(found.map(({ answer }) => answer));
        return answers.size === 1 && Math.max(...medians) <= APART * Math.min(...medians);
      });
    },
  },
  crash: {
    budget: 50,
    async *run(kills) {
      yield of(
        await proveCrashes(ANYTLS, kills, random),
        shownCrashes,
        ({ doubled, lostMs }) => doubled === 0 && (lostMs.at(-1) ?? 0) <= MOST_LOST_MS,
      );
    },
  },
};

async function* revocations(carriers: readonly Carrier[], users: number): AsyncGenerator<Finding> {
  for (const carrier of carriers)
    yield of(
      await proveRevocation(carrier, { users, rounds: ROUNDS }),
      shownRevocation,
      ({ broken, dropped }) => broken + dropped === 0,
    );
}

function of<T>(found: T, shown: (found: T) => string, isGood: (found: T) => boolean): Finding {
  return { text: shown(found), isGood: isGood(found) };
}

function withFaults<T extends { readonly faults: readonly string[] }>(shown: (found: T) => string) {
  return (found: T): string => [shown(found), ...found.faults].join("\n");
}

const wanted = process.argv.slice(2).map((argument) => argument.split("="));
for (const [name] of wanted)
  if (PROOFS[name as string] === undefined)
    throw new Error(`unknown: ${name}; there are ${Object.keys(PROOFS).join(", ")}`);
for (const [name, { budget, run }] of Object.entries(PROOFS)) {
  const asked = wanted.find(([one]) => one === name);
  if (wanted.length > 0 && asked === undefined) continue;
  console.log(`## ${name}`);
  for await (const { text, isGood } of run(Number(asked?.[1] ?? budget))) {
    console.log(isGood ? text : `NOT AS PROMISED: ${text}`);
    if (!isGood) process.exitCode = 1;
  }
}
