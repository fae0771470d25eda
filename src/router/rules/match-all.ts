import { ConfigError } from "#core/errors.ts";
import type { RuleType } from "#core/rule.ts";
import { openCondition } from "#router/tables/open-condition.ts";

/** MATCH,target takes everything that is left. */
export const matchAll: RuleType = {
  type: "MATCH",
  apiType: "Match",
  allowsOptions: false,
  parse(payload) {
    if (payload.trim() !== "") throw new ConfigError("MATCH has no payload: write MATCH,target");
    return { matcher: openCondition({ is: "always" }), payload: "" };
  },
};
