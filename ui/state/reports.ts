/** Which part of the past a report shows, and how its times read. */
import type { Granularity, Report } from "#ui/api/governance-types.ts";
import type { PlotData } from "#ui/parts/plot-data.ts";
import type { PlainKey, Words } from "#ui/words/words.ts";

const HOUR = 3_600;
const DAY = 86_400;

export interface Span {
  readonly granularity: Granularity;
  /** Keys of texts. */
  readonly label: PlainKey;
  readonly note: PlainKey;
  readonly seconds: number;
}

export const SPANS: readonly Span[] = [
  { granularity: "hour", label: "usage.hour", note: "usage.hourNote", seconds: 2 * DAY },
  { granularity: "day", label: "usage.day", note: "usage.dayNote", seconds: 31 * DAY },
  { granularity: "month", label: "usage.month", note: "usage.monthNote", seconds: 396 * DAY },
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

const TIMES: Readonly<Record<Granularity, Intl.DateTimeFormatOptions>> = {
  hour: { timeStyle: "short", hourCycle: "h23" },
  day: { day: "numeric", month: "short", timeZone: "UTC" },
  month: { month: "short", year: "numeric", timeZone: "UTC" },
};

/** Writes times of a report's axis. Days and months are those of UTC. */
export function timeText({ language }: Words, granularity: Granularity): (unixSeconds: number) => string {
  const format = new Intl.DateTimeFormat(language, TIMES[granularity]);
  return (unixSeconds) => format.format(unixSeconds * 1000);
}

export function dataOf({ buckets }: Report): PlotData {
  return {
    times: buckets.map(({ start }) => start),
    down: buckets.map(({ counters }) => counters.download_bytes),
    up: buckets.map(({ counters }) => counters.upload_bytes),
  };
}
