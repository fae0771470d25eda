/** A day of a device's traffic as a drawing inside the page: nothing is loaded, nothing runs. */
import type { ReportBucketView } from "#core/governance.ts";
import type { PageWords } from "#pages/words.ts";
import { HOUR_SECONDS, hourStart } from "./calendar.ts";

const PLOT_HOURS = 24;
const STEP = 12;
const BAR = 9;
const HEIGHT = 80;

/** Where the first bar begins. */
export function plotFrom(nowSeconds: number): number {
  return hourStart(nowSeconds) - (PLOT_HOURS - 1) * HOUR_SECONDS;
}

/** Bars of the last 24 hours, the present one last; download is stacked on upload. Empty when there was no traffic. */
export function hourPlot(buckets: readonly ReportBucketView[], nowSeconds: number, words: PageWords): string {
  const { t, bytes } = words;
  const from = plotFrom(nowSeconds);
  const most = Math.max(0, ...buckets.map(({ counters }) => counters.upload + counters.download));
  if (most === 0) return "";
  const height = (amount: number): number => Math.round((amount / most) * HEIGHT * 10) / 10;
  const bars = buckets.map(({ start, counters: { upload, download } }) => {
    const x = ((start - from) / HOUR_SECONDS) * STEP;
    const [up, down] = [height(upload), height(download)];
    const hour = new Date(start * 1000).toISOString().slice(11, 16);
    const title = `${hour} UTC: ${t("portal.both", { upload: bytes(upload), download: bytes(download) })}`;
    return (
      `<g><title>${title}</title>` +
      `<rect class="up" x="${x}" y="${HEIGHT - up}" width="${BAR}" height="${up}"/>` +
      `<rect class="down" x="${x}" y="${Math.max(0, HEIGHT - up - down)}" width="${BAR}" height="${down}"/></g>`
    );
  });
  return (
    `<figure><svg role="img" aria-label="${t("portal.plot")}" viewBox="0 0 ${PLOT_HOURS * STEP} ${HEIGHT}">${bars.join("")}</svg>` +
    `<figcaption>${t("portal.plot")} (<span class="down">■</span> ${t("portal.download")}, <span class="up">■</span> ${t("portal.upload")}; ≤ ${bytes(most)}/h)</figcaption></figure>`
  );
}
