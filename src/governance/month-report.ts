/** What each policy moved in one month, by day, beside the month before. */
import type { MonthReportView, PolicyStatusView, ReportBucketView, ReportQuery } from "#core/governance.ts";
import { ApiError } from "#core/errors.ts";
import type { Calendar } from "./calendar.ts";
import { sumOf } from "./reports.ts";

const DAY_SECONDS = 86_400;
/** In every zone the middle of a month lies in it, and the longest month later does not. */
const MIDDLE = 15;
const LONGEST_MONTH = 31;

export interface MonthReportEnv {
  readonly calendar: Calendar;
  /** Null: UTC. */
  readonly timeZone: string | null;
  readonly nowSeconds: number;
  readonly policies: readonly PolicyStatusView[];
  report(query: ReportQuery): readonly ReportBucketView[];
}

/** `month`: `2026-10`; null: the last one that is over. Throws `ApiError` 400 for another text. */
export function monthReport(month: string | null, env: MonthReportEnv): MonthReportView {
  const { calendar, nowSeconds, timeZone } = env;
  const present = calendar.monthStart(nowSeconds);
  const from = month === null ? calendar.monthStart(present - 1) : monthStartOf(month, calendar);
  const to = calendar.monthStart(from + (LONGEST_MONTH + 1) * DAY_SECONDS);
  const before = calendar.monthStart(from - 1);
  return {
    from,
    to,
    timeZone: timeZone ?? "UTC",
    isOver: to <= nowSeconds,
    policies: env.policies.map(({ id, name, dimension, device, rule, target }) => {
      const key = `${dimension}:${id}`;
      const days = env.report({ key, granularity: "day", from, to });
      const [earlier] = env.report({ key, granularity: "month", from: before, to: from });
      return {
        key,
        name,
        dimension,
        subject: subjectOf({ device, rule, target }),
        sum: sumOf(days),
        before: earlier?.counters ?? null,
        days,
      };
    }),
  };
}

function monthStartOf(month: string, calendar: Calendar): number {
  const [, year = "", number = ""] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(month) ?? [];
  if (year === "") throw new ApiError(400, "month: expected a year and a month such as 2026-10");
  return calendar.monthStart(Date.UTC(Number(year), Number(number) - 1, MIDDLE) / 1000);
}

/** What the policy is about, as the file has it, and how a device calls itself. */
function subjectOf({ device, rule, target }: Pick<PolicyStatusView, "device" | "rule" | "target">): string {
  if (device !== null)
    return [device.hostName ?? "", device.mac, ...device.sourceCidrs]
      .filter((text) => text !== "")
      .join(", ");
  if (rule !== null) return [rule.type, rule.payload, rule.target].filter((text) => text !== "").join(",");
  return target === null ? "" : `${target.kind} ${target.name}`;
}
