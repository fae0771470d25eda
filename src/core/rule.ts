import type { Condition } from "./condition.ts";
import type { Ip, Network } from "./session.ts";

/**
 * The known facts of a session while rules are tried. undefined: not looked up yet. null: looked up, and there is none.
 * Domain rules read `host`, which is the sniffed name if there is one.
 */
export interface Facts {
  readonly network?: Network | "icmp";
  readonly host?: string | null;
  readonly ip?: Ip | null;
  readonly port?: number;
  readonly sourceIp?: Ip;
  /** Hardware address of a neighbour, lower case with colons. */
  readonly sourceMac?: string | null;
  readonly sourcePort?: number;
  readonly inboundName?: string;
  /** API spelling, as in `InboundInfo.type`. */
  readonly inboundType?: string;
  readonly inboundPort?: number;
  readonly inboundUser?: string | null;
  readonly dscp?: number | null;
  readonly process?: ProcessInfo | null;
  /** The user who owns the client's socket: cheaper to look up than the process. */
  readonly uid?: number | null;
}

export interface ProcessInfo {
  /** Absolute path of the executable; null when the kernel does not say. */
  readonly path: string | null;
  readonly name: string | null;
  readonly uid: number;
}

export type FactName = keyof Facts;

/** What databases of addresses said of both ends of a session while rules were tried. */
export interface AddressRecords {
  /** Codes of countries and categories, in lower case; empty: the database has none for it. Null: not looked up. */
  readonly sourceCodes: readonly string[] | null;
  readonly destinationCodes: readonly string[] | null;
  /** Number and owner of the autonomous system, `13335 CLOUDFLARENET`; "": not looked up, or not known. */
  readonly sourceSystem: string;
  readonly destinationSystem: string;
}

export type ReadRecords = (facts: Facts, known: AddressRecords | null) => AddressRecords | null;

/** One condition. Returns true, false, or undefined for "undecided by the known facts" (Kleene's third value). */
export interface Matcher {
  /** The facts without which it is undecided. */
  readonly reads: readonly FactName[];
  /** Synchronous, pure, looks at nothing outside `reads` except what the matcher itself loaded. */
  match(facts: Facts): boolean | undefined;
  /**
   * Of joined conditions: the fact that is missing first where they are tried from left to right and each is decided
   * before the next; null: none. Absent: the first of `reads`.
   */
  firstMissing?(facts: Facts): FactName | null;
  /**
   * Adds to `known` what databases say of the addresses that `match` looks up in them with these facts; null: nothing
   * is known yet. Absent: it looks into none.
   */
  readonly records?: ReadRecords | undefined;
  /** The same as data, with what is loaded now, for other threads. Absent: only this matcher can tell. */
  readonly condition?: Condition;
  /** Why it matches nothing whatever the facts are, for its data is not there: `database missing`. Absent, null: it can. */
  readonly unavailable?: string | null;
}

/** What rule types may ask for while they are parsed. RULE-SET, GEOSITE, GEOIP and IP-ASN need more than their text. */
export interface RuleScope {
  /** Data sets that exist beside the rules; a set that is not loaded matches nothing. */
  ruleSet(name: string): RuleData | null;
  geosite(category: string): RuleData | null;
  geoip(code: string): RuleData | null;
  asn(number: number): RuleData | null;
  /** What the protocols of this build call the sessions of their listeners, in capitals. */
  readonly inboundTypes: ReadonlySet<string>;
}

/** Live contents of a list: matches against the newest version, and says which facts a match needs. */
export interface RuleData extends Matcher {
  /** Number of entries; -1 where that makes no sense. */
  readonly size: number;
}

export interface RuleOptions {
  /** Do not resolve a name for this rule; match only where an address is already known. */
  readonly noResolve: boolean;
  /** Test the source instead of the destination; implies `noResolve`. */
  readonly source: boolean;
}

/** What a rule type makes of its payload. */
export interface ParsedCondition {
  readonly matcher: Matcher;
  /** Payload in API form (`controller-api.md` §8): normalised CIDR text, `((A,b) && (C,d))` … */
  readonly payload: string;
  /** As `RuleType.apiType`, where the options make another one of it: IP-CIDR with `src` is SrcIPCIDR. */
  readonly apiType?: string;
}

/** One rule type. `parse` throws `ConfigError` with what is wrong and what would be right. */
export interface RuleType {
  /** As in files: `DOMAIN-SUFFIX`. */
  readonly type: string;
  /** As in the API: `DomainSuffix`. */
  readonly apiType: string;
  readonly allowsOptions: boolean;
  parse(payload: string, options: RuleOptions, scope: RuleScope): ParsedCondition;
}

/** A rule in force. */
export interface Rule {
  /** Position in the file's `rules` list; -1 inside a sub-rule list. */
  readonly index: number;
  readonly type: string;
  readonly apiType: string;
  readonly payload: string;
  /** A proxy, a group, a built-in name; for SUB-RULE the name of a list. */
  readonly target: string;
  readonly matcher: Matcher;
}
