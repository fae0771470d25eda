/**
 * A month's report as a page that mail programs show: tables and attributes alone, because most of them drop scripts, style
 * sheets and drawings. It loads nothing. Names come from the configuration and are escaped.
 */
import type { CountersView, MonthPolicyView, MonthReportView } from "#core/governance.ts";
import { escapeHtml } from "#lib/html.ts";
import { pageWords } from "#pages/words.ts";

const { bytes: bytesText } = pageWords("en");

const FONT = "font-family:Arial,Helvetica,sans-serif;color:#222222";
const CELL = "padding:4px 8px;border-bottom:1px solid #dddddd";

export function monthPage(report: MonthReportView): string {
  const { policies, isOver, timeZone } = report;
  const title = `Traffic in ${monthText(report)}`;
  const busiest = policies.toSorted((a, b) => totalOf(b.sum) - totalOf(a.sum) || (a.key < b.key ? -1 : 1));
  const note = isOver ? "" : " The month is not over; the one before it is whole.";
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head>` +
    `<body style="${FONT};background:#ffffff;margin:16px"><h1 style="font-size:22px">${title}</h1>` +
    `<p>Days begin in the time zone ${escapeHtml(timeZone)}.${note}</p>` +
    (policies.length === 0
      ? "<p>There are no policies.</p>"
      : summary(busiest) + busiest.map((policy) => daysOf(policy, report)).join("")) +
    `</body></html>\n`
  );
}

function summary(policies: readonly MonthPolicyView[]): string {
  const heads = [
    "Policy",
    "About",
    "Upload",
    "Download",
    "Together",
    "Month before",
    "Change",
    "Connections",
  ];
  const rows = policies.map(({ key, name, subject, sum, before }) => [
    escapeHtml(name || key),
    escapeHtml(subject),
    bytesText(sum.upload),
    bytesText(sum.download),
    bytesText(totalOf(sum)),
    before === null ? "" : bytesText(totalOf(before)),
    changeText(totalOf(sum), before === null ? null : totalOf(before)),
    `${sum.connections}`,
  ]);
  return table(heads, rows);
}

function daysOf(policy: MonthPolicyView, { timeZone }: MonthReportView): string {
  const { days, name, key } = policy;
  if (days.length === 0) return "";
  const most = Math.max(1, ...days.map(({ counters }) => totalOf(counters)));
  const rows = days.map(({ start, counters }) => {
    const width = Math.max(1, Math.round((totalOf(counters) / most) * 100));
    const bar =
      `<table role="presentation" cellspacing="0" cellpadding="0" width="${width}%">` +
      `<tr><td style="background:#3a7bd5;height:12px;font-size:1px">&#160;</td></tr></table>`;
    return [dayText(start, timeZone), bytesText(counters.upload), bytesText(counters.download), bar];
  });
  return (
    `<h2 style="font-size:16px;margin-top:24px">${escapeHtml(name || key)}</h2>` +
    table(["Day", "Upload", "Download", ""], rows)
  );
}

/** Cells are HTML. */
function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const head = heads.map((text) => `<th align="left" style="${CELL}">${text}</th>`).join("");
  const body = rows
    .map((cells) => `<tr>${cells.map((cell) => `<td style="${CELL}">${cell}</td>`).join("")}</tr>`)
    .join("");
  return `<table cellspacing="0" cellpadding="0" width="100%" style="${FONT};font-size:13px;border-collapse:collapse"><tr>${head}</tr>${body}</table>`;
}

const totalOf = ({ upload, download }: CountersView): number => upload + download;

/** `+12 %`; empty where there is nothing to compare with. */
export function changeText(now: number, before: number | null): string {
  if (before === null || before === 0) return "";
  const percent = Math.round((now / before - 1) * 100);
  return `${percent > 0 ? "+" : ""}${percent} %`;
}

/** The middle of a month is in it in every zone. */
function monthText({ from, to, timeZone }: MonthReportView): string {
  const middle = new Date(((from + to) / 2) * 1000);
  return new Intl.DateTimeFormat("en", { year: "numeric", month: "long", timeZone }).format(middle);
}

function dayText(start: number, timeZone: string): string {
  return new Intl.DateTimeFormat("en-CA", { timeZone }).format(new Date(start * 1000));
}
