/** Consecutive rules over names, or over one address, as one table. */
import type { AddressSide, ConditionOf } from "#core/condition.ts";
import type { FactName, Facts } from "#core/rule.ts";
import { DomainTable } from "#lib/domain-table.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";

/** Answers of `Segment.find` besides a position. */
export const NONE = -1;
export const UNDECIDED = -2;

export type SegmentTable = ConditionOf<"names"> | ConditionOf<"networks">;

export interface Segment {
  readonly reads: readonly FactName[];
  /** The same for other threads. */
  readonly table: SegmentTable;
  /** Position in the segment of the first rule after `after` that matches, NONE, or UNDECIDED. */
  find(facts: Facts, after: number, disabled: Uint8Array | null): number;
}

export function openSegment(table: SegmentTable): Segment {
  return table.is === "names" ? nameSegment(table) : networkSegment(table);
}

function nameSegment(table: ConditionOf<"names">): Segment {
  const names = new DomainTable(table.table);
  return {
    reads: ["host"],
    table,
    find: ({ host }, after, disabled) => {
      if (host === undefined) return UNDECIDED;
      return host === null ? NONE : names.lowest(host, after, disabled);
    },
  };
}

function networkSegment(table: ConditionOf<"networks">): Segment {
  const networks = CidrTable.of(table.table);
  const side: AddressSide = table.side;
  const ofSource = side === "source";
  return {
    reads: [ofSource ? "sourceIp" : "ip"],
    table,
    find: (facts, after, disabled) => {
      const address = ofSource ? facts.sourceIp : facts.ip;
      if (address === undefined) return side === "known-ip" ? NONE : UNDECIDED;
      return address === null ? NONE : networks.lowest(address, after, disabled);
    },
  };
}
