import { ConfigError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { RuleType } from "#core/rule.ts";
import { bytesOfIp, ipFromBytes, parseIpBytes } from "#net/address/ip.ts";
import { addressMatcher, OF_SOURCE } from "#router/address-rule.ts";
import { byteAt } from "#lib/at.ts";

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
      const matcher = addressMatcher(ofSource ? OF_SOURCE : options, (ip) =>
        endsIn(bytesOfIp(ip), bytes, bits),
      );
      const shown = ofSource || !options.source ? {} : { apiType: `Src${apiType}` };
      return { matcher, payload: `${ipFromBytes(bytes)}/${bits}`, ...shown };
    },
  };
}

function endsIn(address: Uint8Array, suffix: Uint8Array, bits: number): boolean {
  if (address.length !== suffix.length) return false;
  for (let left = bits, at = address.length - 1; left > 0; left -= 8, at--) {
    const mask = left >= 8 ? 0xff : (1 << left) - 1;
    if (((byteAt(address, at) ^ byteAt(suffix, at)) & mask) !== 0) return false;
  }
  return true;
}

export const ipSuffix = suffixRule("IP-SUFFIX", "IPSuffix", false);
export const srcIpSuffix = suffixRule("SRC-IP-SUFFIX", "SrcIPSuffix", true);
