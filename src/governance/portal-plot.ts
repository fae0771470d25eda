/** A device's traffic as a drawing inside the page: nothing is loaded, nothing runs. */
import type { ReportBucketView } from "#core/governance.ts";
import type { PageWords } from "#pages/words.ts";
import { hourStart, type Calendar, type Granularity } from "./calendar.ts";

const STEP = 12;
const BAR = 9;
const HEIGHT = 80;
const BARS: Readonly<Record<Granularity, number>> = { hour: 24, day: 30, month: 12 };

/** What the drawing is called, for screen readers, too. */
const NAMES = { hour: "portal.plot", day: "portal.days", month: "portal.months" } as const;

export function plotName(by: Granularity, { t }: PageWords): string {
  return t(NAMES[by]);
}

/** What a drawing shows, and what that is compared with. */
export interface PlotRange {
  readonly by: Granularity;
  /** Ascending, the present one last. */
  readonly starts: readonly number[];
  /** Where as many of them before the first one begin. */
  readonly earlierFrom: number;
  /** Of days and months; null: UTC. */
  readonly timeZone: string | null;
}

/** Where days and months begin. */
export interface ReportTime {
  readonly calendar: Calendar;
  readonly timeZone: string | null;
}

export function plotRange(
  by: Granularity,
  nowSeconds: number,
  { calendar, timeZone }: ReportTime,
): PlotRange {
  const startOf = { hour: hourStart, day: calendar.dayStart, month: calendar.monthStart }[by];
  const back = (from: number): number[] => {
    const starts: number[] = [];
    for (let start = startOf(from); starts.length < BARS[by]; start = startOf(start - 1)) starts.push(start);
    return starts.reverse();
  };
  const starts = back(nowSeconds);
  const first = starts[0] ?? nowSeconds;
  return { by, starts, earlierFrom: back(first - 1)[0] ?? first, timeZone };
}

/** Bars, download stacked on upload, with their sum. Empty when there was no traffic. `buckets`: from `earlierFrom` on. */
export function trafficPlot(
  buckets: readonly ReportBucketView[],
  { by, starts, timeZone }: PlotRange,
  words: PageWords,
): string {
  const { t, bytes } = words;
  const places = new Map(starts.map((start, at) => [start, at]));
  const shown = buckets.filter(({ start }) => places.has(start));
  const most = Math.max(0, ...shown.map(totalOf));
  if (most === 0) return "";
  const height = (amount: number): number => Math.round((amount / most) * HEIGHT * 10) / 10;
  const bars = shown.map(({ start, counters: { upload, download } }) => {
    const x = (places.get(start) ?? 0) * STEP;
    const [up, down] = [height(upload), height(download)];
    const title = `${timeText(by, start, timeZone)}: ${t("portal.both", { upload: bytes(upload), download: bytes(download) })}`;
    return (
      `<g><title>${title}</title>` +
      `<rect class="up" x="${x}" y="${HEIGHT - up}" width="${BAR}" height="${up}"/>` +
      `<rect class="down" x="${x}" y="${Math.max(0, HEIGHT - up - down)}" width="${BAR}" height="${down}"/></g>`
    );
  });
  const name = plotName(by, words);
  const legend = `<span class="down">■</span> ${t("portal.download")}, <span class="up">■</span> ${t("portal.upload")}`;
  const earlier = buckets.filter(({ start }) => start < (starts[0] ?? 0));
  return (
    `<figure><svg role="img" aria-label="${name}" viewBox="0 0 ${BARS[by] * STEP} ${HEIGHT}">${bars.join("")}</svg>` +
    `<figcaption>${name} (${legend}; ≤ ${bytes(most)}/${UNITS[by]}). ` +
    `${comparison(sumOf(shown), sumOf(earlier), words)}</figcaption></figure>`
  );
}

const UNITS: Readonly<Record<Granularity, string>> = { hour: "h", day: "d", month: "m" };

const totalOf = ({ counters }: ReportBucketView): number => counters.upload + counters.download;
const sumOf = (buckets: readonly ReportBucketView[]): number =>
  buckets.reduce((sum, bucket) => sum + totalOf(bucket), 0);

/** Beside as long a time before, where something is known of that. */
function comparison(now: number, before: number, { language, t, bytes }: PageWords): string {
  if (before === 0) return t("portal.sum", { sum: bytes(now) });
  const percent = new Intl.NumberFormat(language, { style: "percent", signDisplay: "exceptZero" });
  return t("portal.compared", {
    sum: bytes(now),
    change: percent.format(now / before - 1),
    before: bytes(before),
  });
}

function timeText(by: Granularity, start: number, timeZone: string | null): string {
  const date = new Date(start * 1000);
  if (by === "hour") return `${date.toISOString().slice(11, 16)} UTC`;
  const day = new Intl.DateTimeFormat("en-CA", { timeZone: timeZone ?? "UTC" }).format(date);
  return by === "day" ? day : day.slice(0, 7);
}
