/** What the portal shows. Names come from the configuration and are escaped all the same. */
import type { PolicyStatusView, ReportBucketView } from "#core/governance.ts";
import { escapeHtml } from "#lib/html.ts";
import type { Language } from "#lib/languages.ts";
import { framedPage } from "#pages/frame.ts";
import { pageWords, type PageWords } from "#pages/words.ts";
import type { Granularity } from "./calendar.ts";
import { plotName, trafficPlot, type PlotRange } from "./portal-plot.ts";

/** The same page in another language. */
export type AddressOf = (language: Language) => string;

export function shortText(language: Language, which: "denied" | "gone"): string {
  const { t } = pageWords(language);
  return `${which === "denied" ? t("portal.denied") : t("portal.gone")}\n`;
}

/** Policies that are over their quota. */
export function overPage(
  language: Language,
  policies: readonly PolicyStatusView[],
  address: AddressOf,
): string {
  const words = pageWords(language);
  const body = policies.map((policy) => block(policy, words)).join("");
  return framedPage(words, { title: words.t("portal.over"), style: STYLE, body, address });
}

/** The report of a device's own policy, by its id. */
export type BucketsOf = (id: string) => readonly ReportBucketView[];

/** What a device may know about itself: its policies, and what those that are its own moved in the range. */
export function ownPage(
  language: Language,
  policies: readonly PolicyStatusView[],
  bucketsOf: BucketsOf,
  range: PlotRange,
  address: AddressOf,
): string {
  const words = pageWords(language);
  const plot = ({ dimension, id }: PolicyStatusView): string =>
    dimension === "device" ? trafficPlot(bucketsOf(id), range, words) : ""; // what all use is not a device's business
  const blocks = policies.map((policy) => block(policy, words, plot(policy))).join("");
  const isDrawn = policies.some(({ dimension }) => dimension === "device");
  const body = blocks === "" ? `<p>${words.t("portal.none")}</p>` : blocks;
  const nav = isDrawn ? rangesNav(range.by, words) : "";
  return framedPage(words, { title: words.t("portal.own"), style: STYLE, body: nav + body, address });
}

const RANGES: readonly Granularity[] = ["hour", "day", "month"];

function rangesNav(present: Granularity, words: PageWords): string {
  const links = RANGES.map((by) => {
    const name = plotName(by, words);
    return by === present ? `<b>${name}</b>` : `<a href="?by=${by}&#38;lang=${words.language}">${name}</a>`;
  });
  return `<p>${links.join(" · ")}</p>`;
}

function block(policy: PolicyStatusView, words: PageWords, plot = ""): string {
  const { t, bytes } = words;
  const { quota, rolling, counters, overQuota } = policy;
  const used = quota.windowSeconds > 0 ? rolling : counters;
  const upload = slowest(policy.uploadBps, overQuota ? quota.overageUploadBps : 0);
  const download = slowest(policy.downloadBps, overQuota ? quota.overageDownloadBps : 0);
  const rates = { upload: rateText(upload, words), download: rateText(download, words) };
  const rows = [
    [t("portal.used"), t("portal.both", { upload: bytes(used.upload), download: bytes(used.download) })],
    [overQuota ? t("portal.rate") : t("portal.limit"), t("portal.both", rates)],
  ];
  if (quota.totalBytes > 0)
    rows.push([t("portal.left"), bytes(Math.max(0, quota.totalBytes - rolling.upload - rolling.download))]);
  const body = rows.map(([what, value]) => `<dt>${what}</dt><dd>${value}</dd>`).join("");
  const lifts = overQuota ? `<p>${liftsText(policy, words)}</p>` : "";
  return `<section><h2>${escapeHtml(policy.name || policy.id)}</h2><dl>${body}</dl>${lifts}${plot}</section>`;
}

function liftsText({ freeAt }: PolicyStatusView, { t, instant }: PageWords): string {
  return freeAt === 0 ? t("portal.lifts") : t("portal.liftsAt", { time: instant(freeAt * 1000) });
}

function slowest(a: number, b: number): number {
  return a === 0 || b === 0 ? Math.max(a, b) : Math.min(a, b);
}

function rateText(bitsPerSecond: number, { language, t }: PageWords): string {
  if (bitsPerSecond === 0) return t("portal.unlimited");
  const number = new Intl.NumberFormat(language, { maximumFractionDigits: 1, useGrouping: false });
  if (bitsPerSecond < 1e6) return `${number.format(bitsPerSecond / 1e3)} Kbit/s`;
  return `${number.format(bitsPerSecond / 1e6)} Mbit/s`;
}

const STYLE =
  "figure{margin:1rem 0}svg{width:100%;height:5rem;border-bottom:1px solid #ccc}" +
  ".up{fill:#d98c1f;color:#d98c1f}.down{fill:#3a7bd5;color:#3a7bd5}";
