import { ConfigError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { Facts, RuleType } from "#core/rule.ts";
import { cidrHolds, cidrText, parseCidr } from "#net/address/cidr.ts";
import type { Cidr } from "#net/address/cidr.ts";
import { bytesOfIp, ipFromBytes, parseIpBytes } from "#net/address/ip.ts";
import type { CidrSide, MergeableMatcher } from "#router/mergeable.ts";
import { itemAt } from "#lib/at.ts";

const OF_SOURCE = ["sourceIp"] as const;
const OF_DESTINATION = ["ip"] as const;

/** One network. IP-CIDR takes both families, as IP-CIDR6 does. */
function cidrRule(type: string, apiType: string, ofSource: boolean): RuleType {
  return {
    type,
    apiType,
    allowsOptions: !ofSource,
    parse(payload, { noResolve, source }) {
      const cidr = parseCidr(payload.trim());
      if (cidr === null)
        throw new ConfigError(`${show(payload)} is no network: write 10.0.0.0/8 or 2001:db8::/32`);
      const side: CidrSide = ofSource || source ? "source" : noResolve ? "known-ip" : "ip";
      const matcher: MergeableMatcher = {
        reads: side === "source" ? OF_SOURCE : OF_DESTINATION,
        match: (facts) => matchSide(facts, side, cidr),
        merge: { kind: side, cidr },
      };
      const shown = ofSource || !source ? {} : { apiType: `Src${apiType}` };
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

function matchSide(facts: Facts, side: CidrSide, cidr: Cidr): boolean | undefined {
  const address = side === "source" ? facts.sourceIp : facts.ip;
  if (address === undefined) return side === "known-ip" ? false : undefined;
  return address !== null && cidrHolds(cidr, bytesOfIp(address));
}

/** IP-CIDR,10.0.0.0/8 matches destinations in the network. */
export const ipCidr = cidrRule("IP-CIDR", "IPCIDR", false);
export const ipCidr6 = cidrRule("IP-CIDR6", "IPCIDR", false);
/** SRC-IP-CIDR,192.168.1.0/24 matches clients in the network. */
export const srcIpCidr = cidrRule("SRC-IP-CIDR", "SrcIPCIDR", true);
