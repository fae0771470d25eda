import * as z from "zod";
import type { CountersView, GovernanceControl, ReportBucketView, ReportQuery } from "#core/governance.ts";
import { ApiError } from "#core/errors.ts";
import { notFound } from "#api/errors.ts";
import { jsonValueOf } from "#api/audit-trail.ts";
import { LongList } from "#api/long-json.ts";
import { route, type Route } from "#api/route.ts";
import { jsonObject, queryOf } from "#api/shapes.ts";
import { monthPage } from "./month-page.ts";
import { countersJson, reportCsv, reportNdjson, statusJson } from "./traffic-control-json.ts";
import {
  policiesShape,
  reportShape,
  rulesShape,
  statusShape,
  summaryShape,
} from "./traffic-control-shapes.ts";

const BASE = "/api/svc/traffic-control";
const DAY_SECONDS = 86_400;
const LONGEST_RANGE_SECONDS = 400 * DAY_SECONDS;
const GRANULARITIES = ["hour", "day", "month"] as const;

/** A document's keys keep their case and its nulls: what it says is checked where configurations are checked. */
const change = jsonObject({ revision: z.int().min(0).default(0), config: z.unknown() });

/** All texts: what is wrong with them is said in a fixed order, and what is empty counts as absent. */
const question = queryOf({
  key: z.string().meta({ default: "global:global" }).optional(),
  granularity: z
    .string()
    .meta({ enum: [...GRANULARITIES], default: "hour" })
    .optional(),
  from: z.string().optional(),
  to: z.string().optional(),
});

export function trafficControlRoutes(governance: GovernanceControl): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: `${BASE}/status`,
      summary: "Policies with their counters and quotas",
      answer: { status: 200, description: "One document", schema: statusShape },
      handle: () => statusJson(governance.status()),
    }),
    route({
      method: "GET",
      scope: "read",
      path: `${BASE}/rules`,
      summary: "Routing rules with the signatures that rule policies go by",
      answer: { status: 200, description: "A list in the order of the file", schema: rulesShape },
      handle: () => ({ rules: new LongList(governance.rules()) }),
    }),
    ...policyRoutes(governance),
    ...reportRoutes(governance),
  ];
}

function policyRoutes(governance: GovernanceControl): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: `${BASE}/policies`,
      summary: "The running traffic-control configuration and its revision",
      answer: { status: 200, description: "An envelope that can be sent back", schema: policiesShape },
      handle: () => governance.policies(),
    }),
    route({
      method: "PUT",
      scope: "admin",
      path: `${BASE}/policies`,
      summary:
        "Put another traffic-control configuration in force; persist=true also writes it into the file",
      query: queryOf({ persist: z.enum(["true", "false"]).default("false") }),
      body: change,
      answer: { status: 200, description: "The new envelope", schema: policiesShape },
      faults: { 500: "It is good but cannot be put in force; everything stays as it was" },
      async handle({ body, query, note }) {
        const persist = query.persist === "true";
        const before = governance.policies();
        const after = await governance.replace({ revision: body.revision, config: body.config, persist });
        note({ before: jsonValueOf(before), after: jsonValueOf({ ...after, persist }) });
        return after;
      },
    }),
    route({
      method: "POST",
      scope: "operate",
      path: `${BASE}/policies/:id/reset`,
      summary: "Start a policy's counters and quota anew",
      answer: { status: 200, description: "The whole status after the commit", schema: statusShape },
      faults: { 500: "It could not be written, or the store cannot be opened; nothing has changed" },
      async handle({ params }) {
        const status = await governance.reset(params.id);
        if (status === null) throw notFound();
        return statusJson(status);
      },
    }),
  ];
}

function reportRoutes(governance: GovernanceControl): readonly Route[] {
  const asked = (query: Question): Asked => readQuestion(query, governance.nowSeconds());
  return [
    route({
      method: "GET",
      scope: "read",
      path: `${BASE}/reports`,
      summary: "One report series by hour, day or month",
      query: question,
      answer: { status: 200, description: "Buckets by start; none for an unknown key", schema: reportShape },
      handle({ query }) {
        const { shown, ...report } = asked(query);
        const buckets = governance.report(report).map(({ start, counters }) => ({
          start,
          counters: countersJson(counters),
        }));
        const { key, from, to } = report;
        return { key, granularity: shown, from, to, buckets };
      },
    }),
    route({
      method: "GET",
      scope: "read",
      path: `${BASE}/reports/summary`,
      summary: "The sum of one report series",
      query: question,
      answer: { status: 200, description: "Sums", schema: summaryShape },
      handle({ query }) {
        const { shown: _, ...report } = asked(query);
        const { key, from, to } = report;
        return { key, from, to, summary: countersJson(sumOf(governance.report(report))) };
      },
    }),
    route({
      method: "GET",
      scope: "read",
      path: `${BASE}/reports/export.csv`,
      summary: "One report series as CSV",
      query: question,
      answer: { status: 200, type: "text/csv", description: "A header line, then a line for each bucket" },
      async handle({ query, reply }) {
        const { shown: _, ...report } = asked(query);
        await reply
          .header("content-disposition", 'attachment; filename="svc-traffic-report.csv"')
          .header("cache-control", "no-store")
          .type("text/csv; charset=utf-8")
          .send(reportCsv(report, governance.report(report)));
      },
    }),
    route({
      method: "GET",
      scope: "read",
      path: `${BASE}/reports/export.ndjson`,
      summary: "One report series as lines of JSON",
      query: question,
      answer: { status: 200, type: "application/x-ndjson", description: "An object for each bucket" },
      async handle({ query, reply }) {
        const { shown: _, ...report } = asked(query);
        await reply
          .header("content-disposition", 'attachment; filename="svc-traffic-report.ndjson"')
          .header("cache-control", "no-store")
          .type("application/x-ndjson")
          .send(reportNdjson(report, governance.report(report)));
      },
    }),
    route({
      method: "GET",
      scope: "read",
      path: `${BASE}/reports/month.html`,
      summary: "A month of every policy beside the month before, as a page that can be mailed",
      query: queryOf({
        month: z
          .string()
          .optional()
          .meta({ description: "Such as 2026-10; absent: the last one that is over" }),
      }),
      answer: { status: 200, type: "text/html", description: "It loads nothing" },
      async handle({ query, reply }) {
        const page = monthPage(governance.monthReport(query.month || null));
        await reply
          .header("cache-control", "no-store")
          .header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'")
          .type("text/html; charset=utf-8")
          .send(page);
      },
    }),
  ];
}

type Question = z.output<typeof question>;

/** `shown`: the granularity as it was asked for. */
interface Asked extends ReportQuery {
  readonly shown: string;
}

/** `from` and `to` first, then the range, then the granularity. What is empty counts as absent. */
function readQuestion(query: Question, nowSeconds: number): Asked {
  const key = query.key || "global:global";
  const shown = query.granularity || "hour";
  const given = { from: unixSeconds("from", query.from), to: unixSeconds("to", query.to) };
  const to = given.to ?? nowSeconds;
  const from = given.from ?? to - DAY_SECONDS;
  if (from >= to || to - from > LONGEST_RANGE_SECONDS)
    throw new ApiError(400, "from must be before to, by at most 400 days");
  const granularity = GRANULARITIES.find((name) => name === shown.toLowerCase());
  if (granularity === undefined)
    throw new ApiError(400, `granularity: expected one of ${GRANULARITIES.join(", ")}`);
  return { key, granularity, from, to, shown };
}

function unixSeconds(name: string, text: string | undefined): number | null {
  if (text === undefined || text === "") return null;
  if (!/^-?\d{1,15}$/.test(text)) throw new ApiError(400, `${name}: expected Unix seconds`);
  return Number(text);
}

function sumOf(buckets: readonly ReportBucketView[]): CountersView {
  const sum = { upload: 0, download: 0, connections: 0, exceeded: 0 };
  for (const { counters } of buckets) {
    sum.upload += counters.upload;
    sum.download += counters.download;
    sum.connections += counters.connections;
    sum.exceeded += counters.exceeded;
  }
  return sum;
}
