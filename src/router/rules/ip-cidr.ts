import { ConfigError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { RuleType } from "#core/rule.ts";
import { cidrText, parseCidr } from "#net/address/cidr.ts";
import type { Cidr } from "#net/address/cidr.ts";
import { ipFromBytes, parseIpBytes } from "#net/address/ip.ts";
import { OF_SOURCE, sideOf } from "#router/address-side.ts";
import { openCondition } from "#router/tables/open-condition.ts";
import { itemAt } from "#lib/at.ts";

/** One network. IP-CIDR takes both families, as IP-CIDR6 does. */
function cidrRule(type: string, apiType: string, ofSource: boolean): RuleType {
  return {
    type,
    apiType,
    allowsOptions: !ofSource,
    parse(payload, options) {
      const cidr = parseCidr(payload.trim());
      if (cidr === null)
        throw new ConfigError(`${show(payload)} is no network: write 10.0.0.0/8 or 2001:db8::/32`);
      const side = sideOf(ofSource ? OF_SOURCE : options);
      const matcher = openCondition({ is: "network", side, ...cidr });
      const shown = ofSource || !options.source ? {} : { apiType: `Src${apiType}` };
      return { matcher, payload: asWritten(payload.trim(), cidr), ...shown };
    },
  };
}

/** With the bits behind the prefix, as other cores show it and dashboards look for it. */
function asWritten(text: string, cidr: Cidr): string {
  const address = itemAt(text.split("/"), 0);
  const bytes = parseIpBytes(address);
  return bytes === null ? cidrText(cidr) : `${ipFromBytes(bytes)}/${cidr.bits}`;
}

/** IP-CIDR,10.0.0.0/8 matches destinations in the network. */
export const ipCidr = cidrRule("IP-CIDR", "IPCIDR", false);
export const ipCidr6 = cidrRule("IP-CIDR6", "IPCIDR", false);
/** SRC-IP-CIDR,192.168.1.0/24 matches clients in the network. */
export const srcIpCidr = cidrRule("SRC-IP-CIDR", "SrcIPCIDR", true);
