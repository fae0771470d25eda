/** Durations with their unit, as windows and retention times have them. */
import { Fault, scalar, show } from "./fields.ts";

const DURATION_UNITS: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** `31d`, also `1d12h`, in any case: milliseconds. Null where it is something else or zero. */
export function parseDurationMs(source: string): number | null {
  const body = source.trim().toLowerCase();
  if (!/^(\d{1,12}[mhdw])+$/.test(body)) return null;
  let totalMs = 0;
  for (const [, count, unit = ""] of body.matchAll(/(\d{1,12})([mhdw])/g))
    totalMs += Number(count) * (DURATION_UNITS[unit] ?? 0);
  return totalMs > 0 && Number.isSafeInteger(totalMs) ? totalMs : null;
}

/** A duration with unit, as milliseconds. The bounds are durations too. */
export const duration = (minimum: string, maximum: string) =>
  scalar({ type: "string", pattern: "^([0-9]+[mhdwMHDW])+$" }, (source, raw) => {
    const value = parseDurationMs(source);
    if (value === null) return new Fault(`expected a duration such as 5m, 12h, 31d or 2w, got ${show(raw)}`);
    if (value >= (parseDurationMs(minimum) ?? 0) && value <= (parseDurationMs(maximum) ?? 0)) return value;
    return new Fault(`expected a duration from ${minimum} to ${maximum}, got ${show(raw)}`);
  });
