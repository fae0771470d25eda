import { ConfigError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { RuleType } from "#core/rule.ts";

/** NETWORK,udp */
export const network: RuleType = {
  type: "NETWORK",
  apiType: "Network",
  allowsOptions: false,
  parse(text) {
    const payload = text.trim().toLowerCase();
    if (payload !== "tcp" && payload !== "udp")
      throw new ConfigError(`${show(text)} is no network: write tcp or udp`);
    return {
      matcher: {
        reads: ["network"],
        match: ({ network: used }) => (used === undefined ? undefined : used === payload),
      },
      payload,
    };
  },
};
