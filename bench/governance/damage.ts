/**
 * Random damage to one file of the store at a time, after a clean end and after crashes: what is read afterwards must be
 * what was acknowledged last, or an acknowledged state before it with the loss in the log; never anything else.
 */
import { NO_LEASES, NO_NEIGHBOURS } from "../../test/support/no-neighbours.ts";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SILENT, type Log } from "#core/log.ts";
import { Governance } from "#governance/governance.ts";
import { GovernedLedger } from "#governance/ledger.ts";
import type { GovernanceSettings } from "#governance/settings.ts";
import { governanceStore } from "#host/governance-store.ts";
import { cidr, policy, settings, TurnedClock } from "../../test/support/governed-ledger.ts";
import { decisionOf, metadataOf } from "../../test/support/metadata.ts";
import { openStoreHere } from "../../test/support/store-here.ts";
import { randomFrom } from "../../test/support/random.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Ip } from "#core/session.ts";

const DEVICES = 12;
const NAME = "traffic-control.db";

const BOOK: GovernanceSettings = settings({
  global: policy({ id: "all" }),
  devices: Array.from({ length: DEVICES }, (_, at) => ({
    ...policy({
      id: `d${at}`,
      quota: {
        totalBytes: 50_000_000,
        uploadBytes: 0,
        downloadBytes: 0,
        windowMs: 86_400_000,
        overageUploadBps: 0,
        overageDownloadBps: 0,
      },
    }),
    mac: null,
    sourceCidrs: [cidr(`192.0.2.${at}`)],
  })),
});

interface Opened extends Disposable {
  readonly governance: Governance;
  readonly ledger: GovernedLedger;
  use(device: number, upload: number, download: number): void;
}

async function open(home: string, clock: TurnedClock, log: Log): Promise<Opened> {
  const ledger = new GovernedLedger(clock);
  const governance = new Governance({
    ledger,
    log,
    neighbours: NO_NEIGHBOURS,
    leases: NO_LEASES,
    storeFile: (store) => governanceStore(join(home, store), log, openStoreHere),
  });
  (await governance.prepare(BOOK, { tolerant: false })).activate();
  return {
    governance,
    ledger,
    use(device, upload, download) {
      const to = { host: "origin.example", ip: null, port: 443 };
      const source = { ip: `192.0.2.${device}` as Ip, port: 1 };
      using meter = ledger.open(
        { ...metadataOf(to), source },
        { ...decisionOf({ name: "DIRECT" } as Outbound, to, null), chain: ["DIRECT"] },
      );
      meter.reserve("upload", upload);
      meter.reserve("download", download);
    },
    [Symbol.dispose]: () => governance[Symbol.dispose](),
  };
}

/** Everything that a reader of the store gets. */
function shown({ governance }: Opened, clock: TurnedClock): string {
  const now = Math.floor(clock.wall / 1000);
  const keys = ["global:all", ...Array.from({ length: DEVICES }, (_, at) => `device:d${at}`)];
  const pairs = keys.slice(1).map((key) => `${key}|global:all`);
  const reports = [...keys, ...pairs].map((key) =>
    (["hour", "day", "month"] as const).map((granularity) =>
      governance.report({ key, granularity, from: now - 399 * 86_400, to: now + 1 }),
    ),
  );
  const policies = governance
    .status()
    .policies.map(({ id, counters, rolling, overQuota, generation }) => [
      id,
      counters,
      rolling,
      overQuota,
      generation,
    ]);
  return JSON.stringify({ policies, reports });
}

interface Scene {
  readonly name: string;
  readonly files: ReadonlyMap<string, Buffer>;
  /** Acknowledged states, the latest last. */
  readonly states: readonly string[];
  readonly wall: number;
}

/** The files as they lie there after a clean end, after a commit, after seconds of journal, after a quota was reached. */
async function scenes(): Promise<readonly Scene[]> {
  const home = mkdtempSync(join(tmpdir(), "weir-damage-"));
  const found: Scene[] = [];
  const clock = new TurnedClock();
  const states: string[] = [];
  const look = (name: string): void => {
    const names = readdirSync(home).filter((file) => file.startsWith(NAME) && !file.endsWith(".lock"));
    const files = new Map(names.map((file) => [file, readFileSync(join(home, file))]));
    found.push({ name, files, states: [...states], wall: clock.wall });
  };
  try {
    {
      using first = await open(home, clock, SILENT);
      states.push(shown(first, clock));
      for (let hour = 0; hour < 72; hour++) {
        for (let device = 0; device < DEVICES; device++) first.use(device, 1000 + hour, 5000 * device + hour);
        clock.pass(3600);
      }
      (await first.governance.prepare(BOOK, { tolerant: false })).abandon(); // commits
      states.push(shown(first, clock));
      look("killed after a commit");
      for (let second = 0; second < 5; second++) {
        first.use(second, 10_000, 20_000);
        clock.pass(1);
        await first.governance.tick();
        states.push(shown(first, clock));
      }
      look("killed after five seconds of journal");
      first.use(1, 60_000_000, 1);
      for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
      states.push(shown(first, clock));
      look("killed after a quota was reached");
      first.use(2, 7, 8);
    }
    using last = await open(home, clock, SILENT);
    states.push(shown(last, clock));
    last[Symbol.dispose]();
    look("ended in order");
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  return found;
}

export type Outcome =
  | "exact"
  | "older, and said so"
  | "older in silence"
  | "begun anew, and said so"
  | "wrong"
  | "crash";

export interface DamageResult {
  readonly outcomes: ReadonlyMap<Outcome, number>;
  /** Of what should not be. */
  readonly faults: readonly string[];
}

export async function measureDamage(rounds: number, seed = 20_261_120): Promise<DamageResult> {
  const all = await scenes();
  const random = randomFrom(seed);
  const outcomes = new Map<Outcome, number>();
  const faults: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const scene = all[round % all.length] as Scene;
    const { outcome, what } = await damageOnce(scene, random);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    if (outcome === "wrong" || outcome === "crash" || outcome === "older in silence")
      faults.push(`round ${round}, ${scene.name}: ${what}: ${outcome}`);
  }
  return { outcomes, faults };
}

type Random = ReturnType<typeof randomFrom>;

async function damageOnce(
  scene: Scene,
  random: Random,
): Promise<{ readonly outcome: Outcome; readonly what: string }> {
  const home = mkdtempSync(join(tmpdir(), "weir-damaged-"));
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const names = [...scene.files.keys()].filter((name) => (scene.files.get(name)?.length ?? 0) > 0);
  const name = names[random(names.length)] as string;
  const { bytes, what } = damaged(scene.files.get(name) as Buffer, random);
  for (const [file, whole] of scene.files)
    writeFileSync(join(home, file), file === name ? bytes : whole, { mode: 0o600 });
  const lines: string[] = [];
  const write = (text: string | (() => string)) => void lines.push(typeof text === "string" ? text : text());
  const clock = new TurnedClock(scene.wall / 1000);
  const text = `${name}: ${what}`;
  try {
    using opened = await open(home, clock, { ...SILENT, error: write, warning: write });
    const now = shown(opened, clock);
    if (now === scene.states.at(-1)) return { outcome: "exact", what: text };
    const said = lines.length > 0;
    if (now === scene.states[0] && said) return { outcome: "begun anew, and said so", what: text };
    if (scene.states.includes(now))
      return { outcome: said ? "older, and said so" : "older in silence", what: text };
    return { outcome: "wrong", what: `${text} [${lines.join("; ")}]` };
  } catch (error) {
    return { outcome: "crash", what: `${text}: ${String(error)}` };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

const PAGE_BYTES = 4096;

function damaged(whole: Buffer, random: Random): { readonly bytes: Buffer; readonly what: string } {
  const bytes = Buffer.from(whole);
  const kind = random(3);
  if (kind === 0) {
    const count = 1 + random(8);
    const at = random(Math.max(1, bytes.length - count));
    for (let i = at; i < at + count && i < bytes.length; i++)
      bytes[i] = (bytes[i] as number) ^ (1 + random(255));
    return { bytes, what: `${count} bytes changed at ${at}` };
  }
  if (kind === 1) {
    const size = random(bytes.length);
    return { bytes: bytes.subarray(0, size), what: `cut to ${size} of ${bytes.length}` };
  }
  const page = random(Math.ceil(bytes.length / PAGE_BYTES)) * PAGE_BYTES;
  const end = Math.min(bytes.length, page + PAGE_BYTES);
  const how = random(3);
  if (how === 0) bytes.fill(0, page, end);
  else if (how === 1) for (let i = page; i < end; i++) bytes[i] = random(256);
  else bytes.copy(bytes, page, 0, Math.min(PAGE_BYTES, end - page));
  return { bytes, what: `page at ${page} filled with ${["zeros", "noise", "the first page"][how]}` };
}

/** `budget`: damages. */
export async function run(out: (line: string) => void, budget: number): Promise<void> {
  const { outcomes, faults } = await measureDamage(budget);
  out(`${budget} damages: ${[...outcomes].map(([outcome, count]) => `${outcome} ${count}`).join(", ")}`);
  for (const fault of faults.slice(0, 30)) out(`  ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
}

if (import.meta.main) await run((line) => console.log(line), Number(process.argv[2] ?? 1000));
