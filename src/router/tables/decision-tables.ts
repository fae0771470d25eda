/** What a thread decides connections by: the rules, and where their targets lead at one moment. */
import type { DialTemplate, NameChoice } from "#core/dial-plan.ts";
import type { NamedAddressesData } from "#net/address/named-addresses.ts";
import type { SniffedStreams } from "#core/sniffer.ts";
import type { RuleTablesData } from "./decide.ts";

export interface DecisionTables {
  readonly rules: RuleTablesData;
  /**
   * By the number of a target plus one; the first is that of connections for which no rule matches. Null: the main thread
   * decides.
   */
  readonly ways: readonly (DialTemplate | null)[];
  /** Programs behind connections are never looked up: conditions on them do not hold. */
  readonly ignoresPrograms: boolean;
  /** Ports of our own listeners: what leads there is for the main thread to decide. */
  readonly ownPorts: ReadonlySet<number>;
  /** What is known of names; null: they are for the main thread to decide. */
  readonly names: DecisionNames | null;
  /** Addresses that may stand for a name, which the main thread knows; null: none does. */
  readonly namedAddresses: NamedAddressesData | null;
  /** One double: how far the clock that protocols compare with their peers is ahead of the system's, in ms. */
  readonly clock: SharedArrayBuffer;
  /**
   * Connections may be brought here that did not ask for it: those of clients at addresses of this machine may be our own,
   * and are for the main thread to look at.
   */
  readonly captures: boolean;
  /** What may be sniffed is for the main thread to look at; null: nothing is. */
  readonly sniffed: SniffedStreams | null;
}

export interface DecisionNames {
  /** As `KnownNames` reads it. */
  readonly known: SharedArrayBuffer;
  /** How rules see the address of a name; null: they do not see it without the main thread. */
  readonly forRules: NameChoice | null;
}

/** Of a listener. */
export interface ListenerFacts {
  readonly name: string;
  /** The number of its rule list. */
  readonly root: number;
  /** The number of the target of all its connections; null: rules decide. */
  readonly fixed: number | null;
}
