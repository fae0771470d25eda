/** SIGKILL under load, again and again on one store: how much time is lost, and that nothing counts twice. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { randomFrom } from "../../test/support/random.ts";
import { startCore, type Core } from "../../test/support/start-core.ts";
import { startLimited, type FlowKind } from "./flows.ts";

const BITS_PER_SECOND = 80_000_000;
const POLL_MS = 40;
/** What goes through while a question is answered and the signal is on its way. */
const SLACK_BYTES = (BITS_PER_SECOND / 8) * 0.3;

const BLOCK = `  enabled: true
  checkpoint-interval: 1m
  global: { id: all, download-bps: ${BITS_PER_SECOND}, quota: { total-bytes: 900000000000000, window: 30d } }
  devices: [{ id: near, source-cidrs: [127.0.0.0/8] }]
  targets: [{ id: node, kind: proxy, target: DIRECT }]`;

interface Known {
  readonly atMs: number;
  readonly bytes: number;
}

export interface KillResult {
  /** The most that a crash cost, in ms of traffic. */
  readonly mostLostMs: number;
  readonly faults: readonly string[];
}

export async function measureKills(rounds: number, seed = 1): Promise<KillResult> {
  await using limited = await startLimited(BLOCK);
  const { controller, core } = limited;
  const { home } = core;
  const text = readFileSync(join(home, "config.yaml"), "utf8");
  const random = randomFrom(seed);
  const faults: string[] = [];
  let mostLostMs = 0;
  let running = core;
  let base = 0;
  const flow: FlowKind = { direction: "download", source: "127.0.0.1", target: "127.0.0.1", onBytes() {} };
  for (let round = 0; round < rounds; round++) {
    const known: Known[] = [{ atMs: performance.now(), bytes: base }];
    const untilMs = performance.now() + 300 + random(2500);
    for (let at = 0; at < 3; at++) await limited.open(flow);
    while (performance.now() < untilMs) {
      known.push(await look(controller));
      await delay(POLL_MS);
    }
    const last = await look(controller);
    known.push(last);
    await running.stop("SIGKILL");
    running = await startSomehow(() => startCore(text, { args: ["-d", home] }));
    const { bytes, sums } = await afterwards(controller);
    if (sums.some((sum) => sum !== bytes)) faults.push(`round ${round}: ${sums} beside ${bytes}`);
    if (bytes > last.bytes + SLACK_BYTES) faults.push(`round ${round}: ${bytes} after ${last.bytes}`);
    const kept = known.findLast((one) => one.bytes <= bytes);
    if (kept === undefined) faults.push(`round ${round}: ${bytes}, less than ${base} at its beginning`);
    else mostLostMs = Math.max(mostLostMs, last.atMs - kept.atMs);
    base = bytes;
  }
  await running[Symbol.asyncDispose]();
  return { mostLostMs, faults };
}

const MOST_STARTS = 8;

/** A machine that is busy elsewhere may let a start take too long; that is not what is looked for here. */
async function startSomehow(start: () => Promise<Core>): Promise<Core> {
  for (let nth = 1; ; nth++)
    try {
      return await start();
    } catch (error) {
      if (nth === MOST_STARTS) throw error;
    }
}

interface Counters {
  readonly upload_bytes: number;
  readonly download_bytes: number;
}

async function ask<T>(controller: number, path: string): Promise<T> {
  const answer = await fetch(`http://127.0.0.1:${controller}/api/svc/traffic-control/${path}`);
  return (await answer.json()) as T;
}

async function countersOf(controller: number) {
  const { policies } = await ask<{
    policies: { policy: { id: string }; counters: Counters; rolling: Counters }[];
  }>(controller, "status");
  return policies;
}

const sumOf = ({ upload_bytes, download_bytes }: Counters): number => upload_bytes + download_bytes;

async function look(controller: number): Promise<Known> {
  const atMs = performance.now();
  const policies = await countersOf(controller);
  return { atMs, bytes: Math.max(...policies.map(({ counters }) => sumOf(counters))) };
}

/** Every way in which the same bytes are kept: policies, the window of the quota, report series and pairs of them. */
async function afterwards(
  controller: number,
): Promise<{ readonly bytes: number; readonly sums: readonly number[] }> {
  const policies = await countersOf(controller);
  const sums = policies.map(({ counters }) => sumOf(counters));
  const quota = policies.find(({ policy }) => policy.id === "all");
  if (quota !== undefined) sums.push(sumOf(quota.rolling));
  for (const key of ["global:all", "device:near", "target:node", "device:near|global:all"]) {
    const from = Math.floor(Date.now() / 1000) - 3 * 86_400;
    const path = `reports/summary?granularity=day&from=${from}&key=${encodeURIComponent(key)}`;
    sums.push(sumOf((await ask<{ summary: Counters }>(controller, path)).summary));
  }
  return { bytes: sums[0] ?? 0, sums };
}

const BATCH = 20;

/** `budget`: kills; a new store for every twenty. The process ends with 1 where there were faults. */
export async function run(out: (line: string) => void, budget: number): Promise<void> {
  let mostLostMs = 0;
  let faults = 0;
  for (let done = 0; done < budget; done += BATCH) {
    const count = Math.min(BATCH, budget - done);
    const result = await measureKills(count, done + 1);
    mostLostMs = Math.max(mostLostMs, result.mostLostMs);
    faults += result.faults.length;
    out(`${done + count} kills under load: at most ${mostLostMs.toFixed(0)} ms lost, ${faults} faults`);
    for (const fault of result.faults) out(`  ${fault}`);
    if (faults > 0) process.exitCode = 1;
  }
}

if (import.meta.main) await run((line) => console.log(line), Number(process.argv[2] ?? 200));
