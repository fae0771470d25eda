import * as z from "zod";
import type { RuleProvidersControl, RuleProviderView } from "#core/control.ts";
import { notFound } from "#api/errors.ts";
import { amount, instant, texts } from "#api/answer-shapes.ts";
import { DONE, route, type Route } from "#api/route.ts";
import { updatedAtJson } from "./time-json.ts";

const shape = z
  .object({
    name: z.string(),
    type: z.literal("Rule"),
    behavior: z.enum(["Domain", "IPCIDR", "Classical"]),
    format: z.enum(["YamlRule", "TextRule", "MrsRule", ""]),
    vehicleType: z.enum(["HTTP", "File", "Inline"]),
    ruleCount: amount(),
    updatedAt: instant(),
    payload: texts().optional(),
  })
  .meta({ id: "RuleProvider" });

export function ruleProviderRoutes(providers: RuleProvidersControl): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/providers/rules",
      slash: true,
      summary: "Providers of rules",
      answer: {
        status: 200,
        description: "By name",
        schema: z.object({ providers: z.record(z.string(), shape) }),
      },
      handle: () => ({
        providers: Object.fromEntries(providers.list().map((it) => [it.name, providerJson(it)])),
      }),
    }),
    route({
      method: "PUT",
      scope: "operate",
      path: "/providers/rules/:name",
      summary: "Load the provider anew",
      answer: DONE,
      faults: { 503: "The provider could not be loaded; the earlier content stays" },
      async handle({ params }) {
        const name = params.name;
        if (providers.get(name) === null) throw notFound();
        await providers.update(name);
      },
    }),
  ];
}

function providerJson({
  name,
  behavior,
  format,
  vehicleType,
  ruleCount,
  updatedAtMs,
  payload,
}: RuleProviderView) {
  return {
    name,
    type: "Rule",
    behavior,
    format,
    vehicleType,
    ruleCount,
    updatedAt: updatedAtJson(updatedAtMs),
    ...(payload === null ? {} : { payload }),
  };
}
