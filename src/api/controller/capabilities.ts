import * as z from "zod";
import type { Control } from "#core/control.ts";
import { DIMENSIONS } from "#core/policy.ts";
import { texts } from "#api/answer-shapes.ts";
import { route, type Route } from "#api/route.ts";

const capabilities = z.object({
  traffic_control: z.object({
    version: z.int().positive(),
    enabled: z.boolean(),
    dimensions: z.array(z.enum(DIMENSIONS)),
    reports: z.array(z.enum(["hour", "day", "month"])),
    compression: z.literal("zstd"),
    persistence: z.boolean(),
  }),
  kernel_direct: z.object({
    version: z.int().positive(),
    backends: texts(),
    features: texts(),
    deprecated_fields: texts(),
  }),
});

export function capabilityRoutes({
  governance,
  kernelDirect,
}: Pick<Control, "governance" | "kernelDirect">): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/api/svc/capabilities",
      summary: "What this build can do beyond the common Controller API",
      answer: { status: 200, description: "One member a capability", schema: capabilities },
      handle: () => ({
        traffic_control: {
          version: 1,
          enabled: governance.enabled,
          dimensions: DIMENSIONS,
          reports: ["hour", "day", "month"],
          compression: "zstd",
          persistence: true,
        },
        kernel_direct: { version: 4, ...kernelDirect.capabilities, deprecated_fields: ["proxy_traffic"] },
      }),
    }),
  ];
}
