/** Memory of this process through a long run, and whether it still grows at the end. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { openTrim } from "#platform/linux/heap.ts";

export interface MemorySample {
  readonly atMs: number;
  /** Resident under load. Of it some ten MiB more or less are what waits for a collection, and what the C library keeps of that. */
  readonly loadMiB: number;
  /** Resident once both have been given back; V8 keeps some pages that it has emptied a while longer. */
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

export class MemorySamples {
  readonly #startMs = performance.now();
  readonly #samples: MemorySample[] = [];
  readonly #trim = openTrim();
  readonly #collect: () => void;

  constructor() {
    setFlagsFromString("--expose-gc");
    this.#collect = runInNewContext("gc") as () => void;
  }

  /** For a moment without connections. */
  take(): MemorySample {
    const loadMiB = process.memoryUsage.rss() / 2 ** 20;
    this.#collect();
    this.#collect(); // what lies outside the heap is freed beside the program, by now
    this.#trim?.();
    const { rss, heapUsed } = process.memoryUsage();
    const sample = {
      atMs: performance.now(),
      loadMiB,
      restMiB: rss / 2 ** 20,
      heapMiB: heapUsed / 2 ** 20,
    };
    this.#samples.push(sample);
    return sample;
  }

  get growth(): Growth | null {
    return growthOf(this.#samples, this.#startMs);
  }
}
