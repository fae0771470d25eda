import { ConfigError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import { suggestion } from "#lib/nearest-word.ts";
import type { RuleType } from "#core/rule.ts";
import { openCondition } from "#router/tables/open-condition.ts";

const NETWORKS: readonly string[] = ["tcp", "udp"];

/** NETWORK,udp */
export const network: RuleType = {
  type: "NETWORK",
  apiType: "Network",
  allowsOptions: false,
  parse(text) {
    const payload = text.trim().toLowerCase();
    if (!NETWORKS.includes(payload))
      throw new ConfigError(`${show(text)} is no network: write tcp or udp${suggestion(payload, NETWORKS)}`);
    return { matcher: openCondition({ is: "one-of", fact: "network", words: [payload] }), payload };
  },
};
