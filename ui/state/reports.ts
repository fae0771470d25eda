/** Which part of the past a report shows, and how its times read. */
import type { Granularity, Report } from "#ui/api/governance-types.ts";
import type { PlotData } from "#ui/parts/plot-data.ts";

const HOUR = 3_600;
const DAY = 86_400;

export interface Span {
  readonly granularity: Granularity;
  readonly label: string;
  readonly note: string;
  readonly seconds: number;
}

export const SPANS: readonly Span[] = [
  { granularity: "hour", label: "Hour", note: "last two days, by hour", seconds: 2 * DAY },
  { granularity: "day", label: "Day", note: "last 31 days", seconds: 31 * DAY },
  { granularity: "month", label: "Month", note: "last 13 months", seconds: 396 * DAY },
];

/** From the last whole hour back, so that the answer to the same question stays the same for a while. */
export function rangeOf({ seconds }: Span, nowMs: number): readonly [from: number, to: number] {
  const to = Math.floor(nowMs / 1000 / HOUR) * HOUR + HOUR;
  return [to - seconds, to];
}

export function queryOf(key: string, span: Span, [from, to]: readonly [number, number]): string {
  const { granularity } = span;
  return String(new URLSearchParams({ key, granularity, from: String(from), to: String(to) }));
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Days and months are those of UTC. */
export function timeText(granularity: Granularity, unixSeconds: number): string {
  const date = new Date(unixSeconds * 1000);
  if (granularity === "hour") return date.toTimeString().slice(0, 5);
  const month = MONTHS[date.getUTCMonth()] ?? "";
  return granularity === "day" ? `${date.getUTCDate()} ${month}` : `${month} ${date.getUTCFullYear()}`;
}

export function dataOf({ buckets }: Report): PlotData {
  return {
    times: buckets.map(({ start }) => start),
    down: buckets.map(({ counters }) => counters.download_bytes),
    up: buckets.map(({ counters }) => counters.upload_bytes),
  };
}
