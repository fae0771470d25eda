/**
 * What a piece costs where it is charged and passes: CPU time, alone, beside books of up to 256 policies and windows of up to a
 * year. Interleaved rounds of one process; the ratio to the smallest is what counts.
 */
import type { Meter } from "#core/meter.ts";
import type { GovernanceSettings } from "#governance/settings.ts";
import { cidr, governed, policy, settings, TurnedClock } from "../../test/support/governed-ledger.ts";

const PIECE_BYTES = 16_384;
const ROUNDS = 9;
const DAY_MS = 86_400_000;

interface Subject {
  readonly name: string;
  readonly clock: TurnedClock;
  readonly meter: Meter;
  readonly nanoseconds: number[];
}

const quota = (windowMs: number) => ({
  totalBytes: Number.MAX_SAFE_INTEGER,
  uploadBytes: 0,
  downloadBytes: 0,
  windowMs,
  overageUploadBps: 0,
  overageDownloadBps: 0,
});

/** One limited device with a quota of this window, among so many policies that are about others. */
async function subject(policies: number, windowMs: number): Promise<Subject> {
  const clock = new TurnedClock();
  const core = governed(clock);
  const own = {
    ...policy({ id: "own", uploadBps: 1e12, downloadBps: 1e12, quota: quota(windowMs) }),
    mac: null,
    sourceCidrs: [cidr("192.0.2.1")],
  };
  const others = Array.from({ length: policies - 1 }, (_, at) => ({
    ...policy({ id: `o${at}`, downloadBps: 1e6, quota: quota(windowMs) }),
    mac: null,
    sourceCidrs: [cidr(`198.51.100.${at % 256}/32`)],
  }));
  const book: GovernanceSettings = settings({ devices: [own, ...others] });
  await core.apply(book);
  const meter = core.session();
  // A window that is full of buckets: the worst that it can be.
  for (let at = 0; at < 1100; at++) {
    clock.pass(windowMs / 1000 / 1050);
    meter.reserve("download", 1);
  }
  return {
    name: `${policies} policies, ${windowMs / DAY_MS >= 1 ? `${windowMs / DAY_MS} d` : "1 h"}`,
    clock,
    meter,
    nanoseconds: [],
  };
}

export interface CostResult {
  readonly name: string;
  readonly nanoseconds: number;
}

async function measureCost(pieces: number): Promise<readonly CostResult[]> {
  const subjects = await Promise.all([
    subject(1, DAY_MS / 24),
    subject(16, DAY_MS / 24),
    subject(256, DAY_MS / 24),
    subject(1, 30 * DAY_MS),
    subject(1, 365 * DAY_MS),
    subject(256, 365 * DAY_MS),
  ]);
  for (let round = 0; round < ROUNDS; round++)
    for (const { clock, meter, nanoseconds } of subjects) {
      const before = process.cpuUsage();
      for (let at = 0; at < pieces; at++) {
        clock.monotonic += 0.01;
        clock.wall += 0.01;
        meter.reserve("download", PIECE_BYTES);
        meter.trySend("download", PIECE_BYTES);
        meter.sent?.("download");
      }
      const { user, system } = process.cpuUsage(before);
      nanoseconds.push(((user + system) * 1000) / pieces);
    }
  return subjects.map(({ name, nanoseconds }) => ({ name, nanoseconds: Math.min(...nanoseconds) }));
}

/** `budget`: pieces a round, in thousands. */
export async function run(out: (line: string) => void, budget: number): Promise<void> {
  const results = await measureCost(budget * 1000);
  const base = results[0]?.nanoseconds ?? Number.NaN;
  for (const { name, nanoseconds } of results)
    out(
      `a charged piece, ${name}: ${nanoseconds.toFixed(0)} ns of CPU, ${(nanoseconds / base).toFixed(2)}× the first`,
    );
}

if (import.meta.main) await run((line) => console.log(line), Number(process.argv[2] ?? 300));
