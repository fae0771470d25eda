/** A rule's identity for history: its content, not its position. */
import { createHash } from "node:crypto";
import { domainToASCII } from "node:url";
import { cidrText, parseCidr } from "#net/address/cidr.ts";

export interface RuleContent {
  readonly type: string;
  readonly payload: string;
  readonly target: string;
}

const ALIASES: ReadonlyMap<string, string> = new Map([
  ["IPCIDR6", "IPCIDR"],
  ["SRCIPCIDR6", "SRCIPCIDR"],
  ["SUBRULE", "SUBRULES"],
]);
const DOMAINS: ReadonlySet<string> = new Set(["DOMAIN", "DOMAINSUFFIX", "DOMAINWILDCARD"]);
const WORDS: ReadonlySet<string> = new Set(["GEOSITE", "GEOIP", "SRCGEOIP"]);
const NETWORKS: ReadonlySet<string> = new Set(["IPCIDR", "SRCIPCIDR"]);
const PORTS: ReadonlySet<string> = new Set(["DSTPORT", "SRCPORT", "INPORT"]);

/** `DOMAIN-SUFFIX`, `DomainSuffix` and `domain_suffix` are one type, and so are the two names of one type. */
export function normalType(type: string): string {
  const plain = type
    .trim()
    .toUpperCase()
    .replaceAll(/[-_\s]/g, "");
  return ALIASES.get(plain) ?? plain;
}

/** The payload as it is hashed; `type` is normal already. */
function normalPayload(type: string, payload: string): string {
  const text = payload.trim();
  if (DOMAINS.has(type)) return asciiDomain(text.toLowerCase());
  if (WORDS.has(type)) return text.toLowerCase();
  if (NETWORKS.has(type)) {
    const cidr = parseCidr(text);
    return cidr === null ? text : cidrText(cidr);
  }
  if (PORTS.has(type) && /^\d+$/.test(text)) return text.replace(/^0+(?=\d)/, "");
  return text.replaceAll(/\s+/g, " ");
}

/** A name that the rules of names do not allow (a wildcard, an underscore) stays as it is. */
function asciiDomain(name: string): string {
  return /^[\x20-\x7e]*$/.test(name) ? name : domainToASCII(name) || name;
}

/** Lower-case hex SHA-256 of type, payload and target in normal form, joined by NUL. */
export function ruleSignature({ type, payload, target }: RuleContent): string {
  const kind = normalType(type);
  return digest([kind, normalPayload(kind, payload), target.trim()]);
}

/** The id of a policy whose user gave none. */
export function defaultId(prefix: "device" | "target", parts: readonly string[]): string {
  return `${prefix}-${digest([prefix, ...parts]).slice(0, 16)}`;
}

function digest(parts: readonly string[]): string {
  return createHash("sha256").update(parts.join("\0")).digest("hex");
}
