import type { GovernanceControl } from "#core/governance.ts";
import { DIMENSIONS } from "#core/policy.ts";
import { route, type Route } from "#api/route.ts";

/** What this build can do of the kernel's bypass: the schema is that of version 4, the lists name what is really there. */
const KERNEL_DIRECT = { version: 4, backends: [], features: [], deprecated_fields: ["proxy_traffic"] };

export function capabilityRoutes(governance: GovernanceControl): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/api/svc/capabilities",
      summary: "What this build can do beyond the common Controller API",
      answer: { status: 200, description: "One member a capability" },
      handle: () => ({
        traffic_control: {
          version: 1,
          enabled: governance.enabled,
          dimensions: DIMENSIONS,
          reports: ["hour", "day", "month"],
          compression: "zstd",
          persistence: true,
        },
        kernel_direct: KERNEL_DIRECT,
      }),
    }),
  ];
}
