import { asDialError } from "./errors.ts";
import type { Group, Outbound } from "./outbound.ts";
import type { AddressRecords, Facts, Rule } from "./rule.ts";
import type { Destination, Metadata } from "./session.ts";
import type { Sniffed } from "./sniffer.ts";

/** Where the name of a destination came from; `hosts` also where only the address did. */
export type DnsMode = "normal" | "fake-ip" | "redir-host" | "hosts";

export interface Decision {
  /** The leaf, after every group has picked. */
  readonly outbound: Outbound;
  /** Names from the rule's target down to the leaf, the leaf last. */
  readonly chain: readonly string[];
  /** The groups that picked, from the rule's target down; they learn how the dial went. */
  readonly groups: readonly Group[];
  /** Where the session goes, as rules and people see it. */
  readonly destination: Destination;
  /** What the outbound is asked for; absent: `destination`. Read it with `dialOf`. */
  readonly dial?: Destination;
  readonly dnsMode: DnsMode;
  /** The name that sniffing found; absent: none. */
  readonly sniffedHost?: string;
  /** Null: mode is global or direct, the listener named a target, or nothing matched. */
  readonly rule: Rule | null;
  /** The SUB-RULE of the root list that led to `rule`; absent: `rule` is in the root list itself. */
  readonly entered?: Rule;
  /** The mode, or the listener's own target, decided; no rule was asked. */
  readonly unruled: boolean;
  /** All that was learnt on the way. */
  readonly facts: Facts;
  /** What the rules that were tried, this one included, looked up in databases; absent: nothing. */
  readonly records?: AddressRecords;
}

export interface Router {
  /** `route`, where nothing has to be found out on the way; else null, with nothing counted. Absent: ask `route`. */
  decide?(metadata: Metadata): Decision | null;
  /**
   * `sniffed` is the result of reading the client's first bytes; absent or null: none. Never throws for want of a
   * match: no match is DIRECT. Throws `DialError` where a listener's target is unknown.
   */
  route(metadata: Metadata, signal: AbortSignal, sniffed?: Sniffed | null): Promise<Decision>;
}

/** What the outbound is asked for: the address alone where `hosts` pinned one. */
export function dialOf({ dial, destination }: Decision): Destination {
  return dial ?? destination;
}

/**
 * Reports the result of a dial to the groups that picked the node; null: success. A dial that we refused or gave up
 * says nothing about the node.
 */
export function reportDial({ groups, outbound }: Decision, error: unknown): void {
  if (groups.length === 0) return;
  const failure = error === null ? null : asDialError(error, outbound.name);
  if (failure?.reason === "aborted" || failure?.reason === "forbidden") return;
  for (const group of groups) group.dialled(failure);
}
