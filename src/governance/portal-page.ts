/** What the portal shows, in English or Chinese. Names come from the configuration and are escaped all the same. */
import type { PolicyStatusView, ReportBucketView } from "#core/governance.ts";
import { bytesText, escapeHtml } from "#lib/html.ts";
import { hourPlot } from "./portal-plot.ts";

const TEXTS = {
  en: {
    over: "Traffic quota reached",
    own: "Your traffic",
    used: "Used in the window",
    left: "Left",
    rate: "Speed now",
    limit: "Speed limit",
    upload: "upload",
    download: "download",
    unlimited: "unlimited",
    plot: "The last 24 hours",
    lifts: "The limit lifts by itself when the window frees",
    estimate: "if nothing more is used, about",
    none: "No policy is about this device.",
    denied: "This link is not valid or has expired.",
    gone: "The quota is no longer used up. Load the page that you wanted again.",
  },
  zh: {
    over: "流量配额已用完",
    own: "我的流量",
    used: "窗口内已用",
    left: "剩余",
    rate: "当前限速",
    limit: "限速",
    upload: "上传",
    download: "下载",
    unlimited: "不限",
    plot: "最近 24 小时",
    lifts: "窗口内的用量释放后，限制会自动解除",
    estimate: "若不再使用，大约在",
    none: "没有针对本设备的策略。",
    denied: "链接无效或已过期。",
    gone: "配额已恢复，请重新打开原来的页面。",
  },
} as const;

export type Language = keyof typeof TEXTS;
type Texts = (typeof TEXTS)[Language];

/** Of `Accept-Language`: the first of ours that it names. */
export function languageOf(accepted: string | undefined): Language {
  const wanted = accepted?.split(",").map((item) => item.trim().slice(0, 2).toLowerCase()) ?? [];
  return wanted.find((language) => language in TEXTS) === "zh" ? "zh" : "en";
}

export function shortText(language: Language, which: "denied" | "gone"): string {
  return `${TEXTS[language][which]}\n`;
}

/** Policies that are over their quota. */
export function overPage(language: Language, policies: readonly PolicyStatusView[]): string {
  const texts = TEXTS[language];
  return page(language, texts.over, policies.map((policy) => block(policy, texts)).join(""));
}

/** The hours of a device's own policy, by its id. */
export type HoursOf = (id: string) => readonly ReportBucketView[];

/** What a device may know about itself: its policies, and of those that are its own the last day. */
export function ownPage(
  language: Language,
  policies: readonly PolicyStatusView[],
  hoursOf: HoursOf,
  nowSeconds: number,
): string {
  const texts = TEXTS[language];
  const plot = ({ dimension, id }: PolicyStatusView): string =>
    dimension === "device" ? hourPlot(hoursOf(id), nowSeconds, texts) : ""; // what all use is not a device's business
  const blocks = policies.map((policy) => block(policy, texts, plot(policy))).join("");
  return page(language, texts.own, blocks === "" ? `<p>${texts.none}</p>` : blocks);
}

function block(policy: PolicyStatusView, texts: Texts, plot = ""): string {
  const { quota, rolling, counters, overQuota } = policy;
  const used = quota.windowSeconds > 0 ? rolling : counters;
  const upload = slowest(policy.uploadBps, overQuota ? quota.overageUploadBps : 0);
  const download = slowest(policy.downloadBps, overQuota ? quota.overageDownloadBps : 0);
  const rows = [
    [texts.used, both(bytesText(used.upload), bytesText(used.download), texts)],
    [overQuota ? texts.rate : texts.limit, both(rateText(upload, texts), rateText(download, texts), texts)],
  ];
  if (quota.totalBytes > 0)
    rows.push([texts.left, bytesText(Math.max(0, quota.totalBytes - rolling.upload - rolling.download))]);
  const body = rows.map(([what, value]) => `<dt>${what}</dt><dd>${value}</dd>`).join("");
  const lifts = overQuota ? `<p>${texts.lifts}${estimate(policy, texts)}.</p>` : "";
  return `<section><h2>${escapeHtml(policy.name || policy.id)}</h2><dl>${body}</dl>${lifts}${plot}</section>`;
}

function estimate({ freeAt }: PolicyStatusView, texts: Texts): string {
  if (freeAt === 0) return "";
  const when = new Date(freeAt * 1000).toISOString().slice(0, 16).replace("T", " ");
  return ` (${texts.estimate} ${when} UTC)`;
}

function slowest(a: number, b: number): number {
  return a === 0 || b === 0 ? Math.max(a, b) : Math.min(a, b);
}

function both(upload: string, download: string, texts: Texts): string {
  return `${texts.upload} ${upload}, ${texts.download} ${download}`;
}

function rateText(bitsPerSecond: number, texts: Texts): string {
  if (bitsPerSecond === 0) return texts.unlimited;
  if (bitsPerSecond < 1e6) return `${+(bitsPerSecond / 1e3).toFixed(1)} Kbit/s`;
  return `${+(bitsPerSecond / 1e6).toFixed(1)} Mbit/s`;
}

const STYLE =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}" +
  "section{border-top:1px solid #ccc}dl{display:grid;grid-template-columns:auto 1fr;gap:.2rem 1rem}dd{margin:0}figure{margin:1rem 0}" +
  "svg{width:100%;height:5rem;border-bottom:1px solid #ccc}.up{fill:#d98c1f;color:#d98c1f}.down{fill:#3a7bd5;color:#3a7bd5}" +
  "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}}";

function page(language: Language, title: string, body: string): string {
  return (
    `<!doctype html><html lang="${language}"><head><meta charset="utf-8">` +
    `<meta name="viewport" content="width=device-width"><title>${title}</title><style>${STYLE}</style></head>` +
    `<body><h1>${title}</h1>${body}</body></html>\n`
  );
}
