import { ConfigError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { RuleType } from "#core/rule.ts";
import { ipFromBytes, parseIpBytes } from "#net/address/ip.ts";
import { OF_SOURCE, sideOf } from "#router/address-side.ts";
import { openCondition } from "#router/tables/open-condition.ts";

/** IP-SUFFIX,0.0.0.1/8 compares the low bits: every address that ends in .1. */
function suffixRule(type: string, apiType: string, ofSource: boolean): RuleType {
  return {
    type,
    apiType,
    allowsOptions: !ofSource,
    parse(payload, options) {
      const [text = "", digits = ""] = payload.trim().split("/");
      const bytes = parseIpBytes(text);
      const bits = /^\d{1,3}$/.test(digits) ? Number(digits) : -1;
      if (bytes === null || bits < 0 || bits > bytes.length * 8)
        throw new ConfigError(`${show(payload)} is no address/bits: write 0.0.0.1/8 for all that end in .1`);
      const matcher = openCondition({
        is: "suffix",
        side: sideOf(ofSource ? OF_SOURCE : options),
        bytes,
        bits,
      });
      const shown = ofSource || !options.source ? {} : { apiType: `Src${apiType}` };
      return { matcher, payload: `${ipFromBytes(bytes)}/${bits}`, ...shown };
    },
  };
}

export const ipSuffix = suffixRule("IP-SUFFIX", "IPSuffix", false);
export const srcIpSuffix = suffixRule("SRC-IP-SUFFIX", "SrcIPSuffix", true);
