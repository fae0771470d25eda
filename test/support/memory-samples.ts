/** Memory of this process through a long run, and whether it still grows at the end. */
import { setTimeout as delay } from "node:timers/promises";
import { openCollection } from "#platform/collection.ts";
import { openTrim } from "#platform/linux/heap.ts";

export interface MemorySample {
  readonly atMs: number;
  /** Resident under load. Of it some ten MiB more or less are what waits for a collection, and what the C library keeps of that. */
  readonly loadMiB: number;
  /** Resident once both have been given back. */
  readonly restMiB: number;
  /** Of the main thread's heap, then. */
  readonly heapMiB: number;
}

/** The median under load, and the least of the others: so much has come to stay. */
type Window = Omit<MemorySample, "atMs">;

export interface Growth {
  readonly early: Window;
  readonly late: Window;
}

/** The first one is for caches and rings to fill. */
const WINDOW_MS = 10 * 60_000;

/** The second ten minutes and the last ten. Null: in less than thirty minutes there are no such two. */
export function growthOf(samples: readonly MemorySample[], startMs: number): Growth | null {
  const endMs = samples.at(-1)?.atMs ?? startMs;
  if (endMs - startMs < WINDOW_MS * 3) return null;
  return {
    early: windowOf(samples, startMs + WINDOW_MS, startMs + WINDOW_MS * 2),
    late: windowOf(samples, endMs - WINDOW_MS, endMs),
  };
}

function windowOf(samples: readonly MemorySample[], fromMs: number, toMs: number): Window {
  const within = samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
  const load = within.map(({ loadMiB }) => loadMiB).sort((a, b) => a - b);
  return {
    loadMiB: load[load.length >> 1] ?? NaN,
    restMiB: Math.min(...within.map(({ restMiB }) => restMiB)),
    heapMiB: Math.min(...within.map(({ heapMiB }) => heapMiB)),
  };
}

export function shownGrowth({ early, late }: Growth): string {
  const shown = (of: keyof Window): string =>
    `${early[of].toFixed(0)} → ${late[of].toFixed(0)} MiB (× ${(late[of] / early[of]).toFixed(3)})`;
  return `second and last ten minutes: resident under load ${shown("loadMiB")}, at rest ${shown("restMiB")}, in the heap ${shown("heapMiB")}`;
}

/** For the collection to have ended, in a program that does nothing else. */
const COLLECTED_MS = 500;

export class MemorySamples {
  readonly #startMs = performance.now();
  readonly #samples: MemorySample[] = [];
  readonly #collect = openCollection();
  readonly #trim = openTrim();

  /** For a moment without connections. Gives back as `MemoryRelease` does. */
  async take(): Promise<MemorySample> {
    const loadMiB = process.memoryUsage.rss() / 2 ** 20;
    this.#collect?.();
    await delay(COLLECTED_MS);
    this.#trim?.();
    const { rss, heapUsed } = process.memoryUsage();
    const [restMiB, heapMiB] = [rss / 2 ** 20, heapUsed / 2 ** 20];
    const sample = { atMs: performance.now(), loadMiB, restMiB, heapMiB };
    this.#samples.push(sample);
    return sample;
  }

  get growth(): Growth | null {
    return growthOf(this.#samples, this.#startMs);
  }
}
