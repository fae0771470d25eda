import type { RuleProvidersControl, RuleProviderView } from "#core/control.ts";
import { ApiError, messageOf } from "#core/errors.ts";
import type { RuleProviders } from "#runtime/rule-providers.ts";

const BEHAVIORS = { domain: "Domain", ipcidr: "IPCIDR", classical: "Classical" } as const;
const FORMATS = { yaml: "YamlRule", text: "TextRule", mrs: "MrsRule" } as const;
export const VEHICLES = { http: "HTTP", file: "File", inline: "Inline" } as const;

/** The rule providers of the runtime in force. */
export function ruleProvidersControl(providers: () => RuleProviders): RuleProvidersControl {
  const get = (name: string): RuleProviderView | null => {
    const provider = providers().all.get(name);
    const config = providers().configs.get(name);
    if (provider === undefined || config === undefined) return null;
    const inline = config.type === "inline";
    return {
      name,
      behavior: BEHAVIORS[config.behavior],
      format: inline ? "" : FORMATS[config.format],
      vehicleType: VEHICLES[config.type],
      ruleCount: provider.size,
      updatedAtMs: provider.resource.updatedAtMs,
      payload: inline ? config.payload : null,
    };
  };
  return {
    list: () => [...providers().all.keys()].map(get).filter((view) => view !== null),
    get,
    async update(name) {
      const provider = providers().all.get(name);
      if (provider === undefined) throw new ApiError(404, "Resource not found");
      await updateOrSay(() => provider.resource.update());
    },
  };
}

/** Any failure of an update is a 503 with its reason. */
export async function updateOrSay(update: () => Promise<void>): Promise<void> {
  try {
    await update();
  } catch (error) {
    throw new ApiError(503, messageOf(error), { cause: error });
  }
}
