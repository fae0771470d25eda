/**
 * What a rule asks of a session, as plain data. Every thread makes its own matcher of it (`router/tables/open-condition.ts`),
 * so that all of them decide alike. What is large in it (names, networks, databases) lies in shared memory, once.
 */
import type { DomainPattern } from "#lib/domain-pattern.ts";
import type { DomainTableParts } from "#lib/domain-table.ts";
import type { PrefixTreeParts } from "#lib/prefix-tree.ts";

/** Which address is compared: the destination, the destination if it is known already, the source. */
export type AddressSide = "ip" | "known-ip" | "source";

/** Networks of both families: the position of each in the list that they were made from. */
export interface NetworkTable {
  readonly size: number;
  readonly v4: PrefixTreeParts;
  readonly v6: PrefixTreeParts;
}

/** How a text is compared; an expression is the source of one that runs in linear time. */
export type TextTest = "equals" | "contains" | "glob" | "expression";

export type Condition =
  | { readonly is: "always" | "never" }
  /** Only the thread that parsed the rule can tell. */
  | { readonly is: "unknown" }
  /** `covers`: EXACT, BELOW, SUFFIX of lib/domain-table.ts. */
  | { readonly is: "name"; readonly name: string; readonly covers: number }
  | { readonly is: "names"; readonly table: DomainTableParts }
  | { readonly is: "starred-names"; readonly patterns: readonly DomainPattern[] }
  | { readonly is: "host"; readonly test: TextTest; readonly text: string }
  | {
      readonly is: "program";
      readonly part: "name" | "path";
      readonly test: TextTest;
      readonly text: string;
    }
  | { readonly is: "network"; readonly side: AddressSide; readonly bytes: Uint8Array; readonly bits: number }
  | {
      readonly is: "networks";
      readonly side: AddressSide;
      readonly table: NetworkTable;
      /** All addresses but those of the networks. */
      readonly reversed?: boolean;
    }
  /** The low bits of an address. */
  | { readonly is: "suffix"; readonly side: AddressSide; readonly bytes: Uint8Array; readonly bits: number }
  /** Private, loopback and reserved networks; see `isLanIp`. */
  | { readonly is: "lan"; readonly side: AddressSide; readonly negated: boolean }
  /** The addresses whose record in a MaxMind database has this code, or is that of this autonomous system. */
  | { readonly is: "country"; readonly database: Uint8Array; readonly code: string }
  | { readonly is: "system"; readonly database: Uint8Array; readonly number: number }
  | {
      readonly is: "numbers";
      readonly fact: "port" | "sourcePort" | "inboundPort" | "uid" | "dscp";
      /** Pairs of the first and the last number. */
      readonly ranges: readonly (readonly [first: number, last: number])[];
    }
  | {
      readonly is: "one-of";
      /** `inboundType` is compared in capitals. */
      readonly fact: "network" | "inboundName" | "inboundType" | "inboundUser";
      readonly words: readonly string[];
    }
  /** The address that each part needs is looked for from left to right. */
  | { readonly is: "and" | "or"; readonly parts: readonly Condition[] }
  | { readonly is: "not"; readonly part: Condition }
  /** A list of which one item is enough; nothing is looked for in its order. */
  | { readonly is: "any"; readonly parts: readonly Condition[] }
  /** A list, as a rule with options asks it. */
  | {
      readonly is: "list";
      readonly list: Condition;
      readonly noResolve: boolean;
      readonly source: boolean;
      readonly negated: boolean;
    };

/** By its kind. */
export type ConditionOf<Is extends Condition["is"]> = Extract<Condition, { readonly is: Is }>;

/** Those that a condition is made of. */
export function partsOf(condition: Condition): readonly Condition[] {
  if ("parts" in condition) return condition.parts;
  if ("part" in condition && condition.is === "not") return [condition.part];
  return condition.is === "list" ? [condition.list] : [];
}

export const UNKNOWN: Condition = { is: "unknown" };
