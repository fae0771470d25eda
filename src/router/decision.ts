/** From the target of a rule to the decision on a session. */
import { DialError } from "#core/errors.ts";
import { isGroup, unwrap } from "#core/outbound.ts";
import type { Group, Outbound } from "#core/outbound.ts";
import type { Decision } from "#core/router.ts";
import type { AddressRecords, Facts, Rule } from "#core/rule.ts";
import type { Metadata } from "#core/session.ts";
import { lastOf } from "#lib/at.ts";
import type { Prepared } from "./session-facts.ts";

type Mutable<T> = { -readonly [key in keyof T]: T[key] };

const NO_GROUPS: readonly Group[] = [];

export type PassReason = "rule" | "line" | "udp";

/** Why a rule that matched does not decide; null: it does. */
export function passReason({ outbound, groups }: Decision, network: Metadata["network"]): PassReason | null {
  if (outbound.passes !== undefined) return outbound.passes;
  // When the outbound cannot carry a ping it is answered by us: the rule has decided all the same.
  if (network === "icmp") return null;
  return outbound.networks.has(network) && !(network === "udp" && groups.some(disablesUdp)) ? null : "udp";
}

/** When no rule is left, a group that carries no datagrams refuses them. */
export function unruled(decision: Decision, network: Metadata["network"]): Decision {
  const closed = network === "udp" ? decision.groups.find(disablesUdp) : undefined;
  if (closed !== undefined) throw new DialError("failed", `${closed.name}: disable-udp is set`);
  return { ...decision, unruled: true };
}

function disablesUdp({ disablesUdp = false }: Group): boolean {
  return disablesUdp;
}

/** What a walk has found out. */
export interface Learnt {
  readonly facts: Facts;
  readonly records?: AddressRecords | null;
  readonly entered?: Rule | null;
}

export function decisionOf(
  target: Outbound,
  metadata: Metadata,
  prepared: Prepared,
  rule: Rule | null,
  learnt: Learnt,
): Decision {
  return decisionBy(unwrap(target, metadata), prepared, rule, learnt);
}

/** The same where the groups have picked already: `chain` leads from the rule's target to the leaf. */
export function decisionBy(
  chain: readonly Outbound[],
  { destination, dial = destination, dnsMode = "normal", sniffedHost }: Prepared,
  rule: Rule | null,
  { facts, records = null, entered = null }: Learnt,
): Decision {
  const decision: Mutable<Decision> = {
    outbound: lastOf(chain),
    chain: namesOf(chain),
    groups: chain.length === 1 ? NO_GROUPS : chain.filter(isGroup), // the leaf is none
    destination,
    dnsMode,
    rule,
    unruled: false,
    facts,
  };
  if (dial !== destination) decision.dial = dial;
  if (sniffedHost !== undefined) decision.sniffedHost = sniffedHost;
  if (rule !== null && entered !== null) decision.entered = entered;
  if (records !== null) decision.records = records;
  return decision;
}

function namesOf(chain: readonly Outbound[]): readonly string[] {
  const names: string[] = [];
  for (const { name, through } of chain) {
    if (through !== undefined) names.push(...through);
    names.push(name);
  }
  return names;
}
