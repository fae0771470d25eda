/**
 * A quota of 10 MB under connections at full speed: how far it is overshot, how soon the overage rate holds, and whether
 * it is on the medium in time. The last is found out with SIGKILL.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startCore } from "../../test/support/start-core.ts";
import { startLimited, type LimitedCore } from "./flows.ts";

const CAP_BYTES = 10_000_000;
const OVERAGE_BPS = 80_000;
/** What the overage rate allows in the time, its burst included. */
const allowed = (ms: number): number => (OVERAGE_BPS / 8000) * ms + 1500;

const BLOCK = `  enabled: true
  global: { id: all, quota: { total-bytes: ${CAP_BYTES}, window: 1h, overage-upload-bps: ${OVERAGE_BPS}, overage-download-bps: ${OVERAGE_BPS} } }`;

interface Status {
  readonly policies: readonly {
    readonly over_quota: boolean;
    readonly counters: Readonly<Record<"upload_bytes" | "download_bytes" | "exceeded_events", number>>;
  }[];
}

async function statusOf(controller: number) {
  const answer = await fetch(`http://127.0.0.1:${controller}/api/svc/traffic-control/status`);
  const [policy] = ((await answer.json()) as Status).policies;
  if (policy === undefined) throw new Error("no policy");
  return policy;
}

export interface OvershootResult {
  /** Counted above the cap a second after it was reached, less what the overage rate allows. */
  readonly countedBytes: number;
  /** Written in the 50 ms after the cap was reached; null: not to be seen. */
  readonly first50Ms: number | null;
  /** Written in the second after those, against what the overage rate allows. */
  readonly nextSecond: number | null;
}

export async function measureOvershoot(
  connections: number,
  relay: "auto" | "portable",
): Promise<OvershootResult> {
  await using limited = await startLimited(BLOCK, { WEIR_PROBE_CAP: String(CAP_BYTES) }, relay);
  await openAll(limited, connections);
  await reached(limited);
  await delay(1200);
  const { counters } = await statusOf(limited.controller);
  const capped = (await limited.end())?.capped ?? null;
  return {
    countedBytes: counters.download_bytes + counters.upload_bytes - CAP_BYTES - allowed(1200),
    first50Ms: capped?.first50Ms ?? null,
    nextSecond: capped === null ? null : capped.nextSecond / allowed(1000),
  };
}

/** Is it known after the restart that the quota was used up, when the process was killed `killMs` after that? */
export async function survivesKill(
  connections: number,
  killMs: number,
  relay: "auto" | "portable" = "portable",
): Promise<boolean> {
  const probe = { WEIR_PROBE_CAP: String(CAP_BYTES), WEIR_PROBE_KILL_MS: String(killMs) };
  await using limited = await startLimited(BLOCK, probe, relay);
  await openAll(limited, connections);
  await limited.core.exited;
  const text = readFileSync(join(limited.core.home, "config.yaml"), "utf8");
  await using _again = await startCore(text, { args: ["-d", limited.core.home] });
  const { over_quota, counters } = await statusOf(limited.controller);
  return over_quota && counters.exceeded_events === 1;
}

async function openAll(limited: LimitedCore, connections: number): Promise<void> {
  const kind = { direction: "download", source: "127.0.0.1", target: "127.0.0.1", onBytes() {} } as const;
  // Those that are opened last may find the core gone.
  await Promise.race([
    Promise.all(Array.from({ length: connections }, () => limited.open(kind))),
    limited.core.exited,
  ]);
}

async function reached({ controller }: LimitedCore): Promise<void> {
  while (!(await statusOf(controller)).over_quota) await delay(5);
}

/** `budget`: repetitions. */
export async function run(out: (line: string) => void, budget: number): Promise<void> {
  for (const relay of ["portable", "auto"] as const)
    for (const connections of [1, 50]) {
      const what = `relay ${relay}, 10 MB quota, ${connections} connections`;
      const results: OvershootResult[] = [];
      for (let at = 0; at < budget; at++) results.push(await measureOvershoot(connections, relay));
      const worst = (of: (result: OvershootResult) => number | null) =>
        Math.max(...results.map((result) => of(result) ?? Number.NaN));
      const each = (bytes: number): string => `${(bytes / 1024 / connections).toFixed(1)} KiB a connection`;
      out(
        `${what}, worst of ${budget}: ${each(worst(({ countedBytes }) => countedBytes))} too much, ` +
          `in the 50 ms after the cap ${each(worst(({ first50Ms }) => first50Ms))}, ` +
          `in the second after that ${worst(({ nextSecond }) => nextSecond).toFixed(2)}× what the overage rate allows`,
      );
      let kept = 0;
      for (let at = 0; at < budget; at++) if (await survivesKill(connections, 100, relay)) kept++;
      out(`${what}: killed 100 ms after the cap, known after the restart ${kept} of ${budget} times`);
    }
}

if (import.meta.main) await run((line) => console.log(line), Number(process.argv[2] ?? 10));
