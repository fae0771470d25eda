export interface PlotData {
  /** Parallel lists, ascending: Unix seconds, amounts. */
  readonly times: readonly number[];
  readonly down: readonly number[];
  readonly up: readonly number[];
}

/** Unix seconds at both ends, or how many of them end with the newest of the data; absent: from the first to the newest. */
export type PlotRange = readonly [from: number, to: number] | number;

const LEAST_SECONDS = 60;

/** Both ends of the time axis, in Unix seconds, also where there are no data yet. */
export function axisOf(
  range: PlotRange | undefined,
  first: number | null,
  newest: number | null,
  nowMs: number,
): [number, number] {
  if (typeof range === "object") return [...range];
  const end = newest ?? nowMs / 1000;
  return [range === undefined ? Math.min(first ?? end, end - LEAST_SECONDS) : end - range, end];
}
