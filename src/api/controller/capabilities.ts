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
  /** Listener types whose users the admin API manages: of its contract, and beyond it. */
  managed_users: z.object({
    version: z.int().positive(),
    protocols: texts(),
    additional_protocols: texts(),
  }),
});

export function capabilityRoutes({
  build,
  governance,
  kernelDirect,
}: Pick<Control, "build" | "governance" | "kernelDirect">): readonly Route[] {
  const managed = (isAdditional: boolean) =>
    build.managedProtocols.flatMap((each) => (each.isAdditional === isAdditional ? [each.type] : []));
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
        managed_users: { version: 1, protocols: managed(false), additional_protocols: managed(true) },
      }),
    }),
  ];
}
