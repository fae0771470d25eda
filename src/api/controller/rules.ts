import * as z from "zod";
import type { RulesControl, RuleView } from "#core/control.ts";
import { amount, instant, texts } from "#api/answer-shapes.ts";
import { LongList } from "#api/long-json.ts";
import { DONE, route, type Route } from "#api/route.ts";
import { queryInt, queryOf } from "#api/shapes.ts";
import { timeJson } from "./time-json.ts";

/** Indexes of the list as keys, true: disabled. */
const changes = z.record(z.string().regex(/^-?[0-9]{1,15}$/, "expected the index of a rule"), z.boolean());

const listQuery = queryOf({
  unavailable: z.string().default("").describe("`true`: only those that can match nothing"),
});

const question = queryOf({
  destination: z.string().min(1).max(2048),
  port: queryInt(0, 65_535).optional(),
  network: z.enum(["tcp", "udp"]).default("tcp"),
  source: z.string().optional(),
  inbound: z.string().optional(),
});

const ruleShape = z
  .object({
    index: amount(),
    type: z.string().min(1),
    payload: z.string(),
    proxy: z.string(),
    size: z.int().min(-1),
    unavailable: z.string().optional().describe("Why it matches nothing: its database is missing"),
    extra: z.object({
      disabled: z.boolean(),
      hitCount: amount(),
      hitAt: instant(),
      missCount: amount(),
      missAt: instant(),
    }),
  })
  .meta({ id: "Rule" });

const explanation = z.object({
  question: z.string().describe("As it was understood"),
  steps: z.array(
    z.object({
      index: z.int().min(-1).describe("-1: no rule but a look-up on the way"),
      type: z.string(),
      payload: z.string(),
      target: z.string(),
      verdict: z.enum(["yes", "no", "unknown"]),
      note: z.string(),
    }),
  ),
  chain: texts(),
});

export function ruleRoutes(rules: RulesControl): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/rules",
      slash: true,
      summary: "Rules in file order with their counters",
      query: listQuery,
      answer: { status: 200, description: "A list", schema: z.object({ rules: z.array(ruleShape) }) },
      handle({ query: { unavailable } }) {
        const all = Iterator.from(rules.list());
        const wanted = unavailable === "true" ? all.filter((rule) => rule.unavailable !== null) : all;
        return { rules: new LongList(wanted.map(ruleJson)) };
      },
    }),
    route({
      method: "PATCH",
      scope: "operate",
      path: "/rules/disable",
      summary: "Disable or enable rules until the next reload",
      body: changes,
      answer: DONE,
      handle({ body, note }) {
        note({ after: body });
        rules.disable(new Map(Object.entries(body).map(([index, disabled]) => [Number(index), disabled])));
      },
    }),
    route({
      method: "GET",
      scope: "read",
      path: "/rules/explain",
      summary: "Why a session to this destination would go where it goes",
      query: question,
      answer: {
        status: 200,
        description: "The rules that were looked at, and the chain",
        schema: explanation,
      },
      faults: { 503: "What the rules need to know could not be looked up in time" },
      handle({ query }) {
        const { port = null, source = null, inbound = null, ...rest } = query;
        return rules.explain({ ...rest, port, source, inbound });
      },
    }),
  ];
}

function ruleJson({ index, type, payload, target, size, unavailable, ...rule }: RuleView) {
  return {
    index,
    type,
    payload,
    proxy: target,
    size,
    ...(unavailable === null ? {} : { unavailable }),
    extra: {
      disabled: rule.disabled,
      hitCount: rule.hits,
      hitAt: timeJson(rule.lastHitAtMs),
      missCount: rule.misses,
      missAt: timeJson(rule.lastMissAtMs),
    },
  };
}
