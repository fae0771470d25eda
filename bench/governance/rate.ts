/**
 * How well limits are kept: the mean at the receiving ends from the first byte on, the fullest 100 ms of what the relay
 * writes, and the shares of the flows. The ends share the machine with the core, so each rate stands beside what the
 * same flows move without a limit.
 */
import { loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { Direction } from "#core/meter.ts";
import { startLimited } from "./flows.ts";
import { jain, Receiver } from "./receiver.ts";

export interface RateResult {
  readonly bitsPerSecond: number;
  /** The fullest 100 ms of the relay's writes against the limit; null: nothing was written. */
  readonly peak: number | null;
  readonly arrivedPeak: number;
  readonly jain: number;
}

const MOST_WAIT_MS = 5_000;

export type Relay = "auto" | "portable";

/** `bitsPerSecond` 0: no limit. */
async function measureRate(
  bitsPerSecond: number,
  flows: number,
  direction: Direction,
  spanMs: number,
  relay: Relay,
): Promise<RateResult> {
  const limit = bitsPerSecond === 0 ? "" : `, ${direction}-bps: ${bitsPerSecond}`;
  const block = `  enabled: true\n  global: { id: all${limit} }`;
  await using limited = await startLimited(block, {}, relay);
  const all = new Receiver(spanMs);
  const shares = Array.from({ length: flows }, () => 0);
  const opened = shares.map((_, at) =>
    limited.open({
      direction,
      source: "127.0.0.1",
      target: "127.0.0.1",
      onBytes(bytes) {
        all.add(bytes);
        shares[at] = (shares[at] as number) + bytes;
      },
    }),
  );
  await Promise.all(opened);
  await firstByte(all);
  await delay(spanMs);
  const arrived = [...shares];
  const written = await limited.end();
  const limitOr = bitsPerSecond === 0 ? all.bitsPerSecond : bitsPerSecond;
  return {
    bitsPerSecond: all.bitsPerSecond,
    peak: written === null ? null : (written.most * 80) / limitOr,
    arrivedPeak: all.peakBitsPerSecond / limitOr,
    jain: jain(arrived),
  };
}

async function firstByte(receiver: Receiver): Promise<void> {
  const startedMs = performance.now();
  while (!receiver.started && performance.now() - startedMs < MOST_WAIT_MS) await delay(1);
}

export interface NestedResult {
  readonly global: number;
  readonly device: number;
  readonly rule: number;
  /** The fullest 100 ms of the relay's writes against the limit of all. */
  readonly peak: number | null;
}

/** 100 Mbit/s for all, 20 for a device, 10 for what one rule of that device decides; in bit/s as they arrived. */
async function measureNested(spanMs: number, flowsEach: number, relay: Relay): Promise<NestedResult> {
  const block = `  enabled: true
  global: { download-bps: 100000000 }
  devices: [{ id: device, source-cidrs: [127.0.0.3/32], download-bps: 20000000 }]
  rules: [{ id: rule, type: IP-CIDR, payload: 127.0.0.5/32, target: DIRECT, download-bps: 10000000 }]`;
  await using limited = await startLimited(block, {}, relay);
  const kinds = [
    { source: "127.0.0.2", target: "127.0.0.1" },
    { source: "127.0.0.3", target: "127.0.0.1" },
    { source: "127.0.0.3", target: "127.0.0.5" },
  ];
  const arrived = kinds.map(() => new Receiver(spanMs));
  const all = new Receiver(spanMs);
  const device = new Receiver(spanMs);
  const opening = kinds.flatMap((kind, at) =>
    Array.from({ length: flowsEach }, () =>
      limited.open({
        ...kind,
        direction: "download",
        onBytes(bytes) {
          all.add(bytes);
          if (at > 0) device.add(bytes);
          arrived[at]?.add(bytes);
        },
      }),
    ),
  );
  await Promise.all(opening);
  await firstByte(all);
  await delay(spanMs + 500);
  const written = await limited.end();
  return {
    global: all.bitsPerSecond,
    device: device.bitsPerSecond,
    rule: arrived[2]?.bitsPerSecond ?? 0,
    peak: written === null ? null : (written.most * 80) / 100e6,
  };
}

const MBIT = 1e6;

/** `budget`: seconds a measurement. `only`: those whose line begins with this. */
export async function run(out: (line: string) => void, budget: number, only = ""): Promise<void> {
  for (const relay of ["portable", "auto"] as const) await runBy(relay, out, budget * 1000, only);
}

async function runBy(relay: Relay, out: (line: string) => void, spanMs: number, only: string): Promise<void> {
  for (const mbit of [1, 10, 100, 1000])
    for (const flows of [1, 64])
      for (const direction of ["upload", "download"] as const) {
        const name = `relay ${relay}, ${mbit} Mbit/s, ${flows} flows, ${direction}`;
        if (!name.startsWith(only)) continue;
        const result = await measureRate(mbit * MBIT, flows, direction, spanMs, relay);
        const free =
          mbit < 1000
            ? ""
            : `; without a limit ${((await measureRate(0, flows, direction, 3000, relay)).bitsPerSecond / MBIT).toFixed(0)} Mbit/s`;
        out(
          `${name}: ${percent(result.bitsPerSecond / (mbit * MBIT))}, ` +
            `fullest 100 ms written ${result.peak?.toFixed(2) ?? "–"}×, arrived ${result.arrivedPeak.toFixed(2)}×, ` +
            `Jain ${result.jain.toFixed(3)}${free}; load ${loadavg()[0]?.toFixed(1)}`,
        );
      }
  for (const flows of [1, 8]) {
    const name = `relay ${relay}, nested 100/20/10, ${flows} flows each`;
    if (!name.startsWith(only)) continue;
    const { global, device, rule, peak } = await measureNested(spanMs, flows, relay);
    out(
      `${name}: global ${percent(global / 100e6)}, device ${percent(device / 20e6)}, ` +
        `rule ${percent(rule / 10e6)}, fullest 100 ms written ${peak?.toFixed(2) ?? "–"}×`,
    );
  }
}

function percent(ratio: number): string {
  const off = (ratio - 1) * 100;
  return `${off < 0 ? "" : "+"}${off.toFixed(2)} %`;
}

if (import.meta.main) await run((line) => console.log(line), Number(process.argv[2] ?? 10));
