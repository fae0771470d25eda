/** The decision on one session by the tables alone, on whatever thread: nothing is looked up for it. */
import { partsOf, type Condition } from "#core/condition.ts";
import type { Facts } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";
import { int32At, itemAt } from "#lib/at.ts";
import { dataOfTable, openTable, type RuleTable, type RuleTableData } from "./rule-table.ts";
import { Walk } from "./walk.ts";

/** The number of the list `rules`; the others are numbered from 0 in their order. */
export const MAIN_LIST = -1;

export interface RuleTables<Table = RuleTable> {
  readonly main: Table;
  /** The lists that SUB-RULE and listeners lead to. */
  readonly nested: readonly Table[];
}

export type RuleTablesData = RuleTables<RuleTableData>;

/** The rule that matches. */
export interface FoundRule {
  /** The number of its target; `NO_TARGET`: no rule matches. */
  readonly target: number;
  /** The number of its list, and its position there. */
  readonly list: number;
  readonly position: number;
  /** Position in the list that the walk began with: of the rule, or of the SUB-RULE that led to it; its length: no rule. */
  readonly end: number;
}

export const NO_TARGET = -1;

/** In place of the number of a list: no rule was asked. */
export const UNRULED = -2;

export function dataOfTables({ main, nested }: RuleTables): RuleTablesData {
  return { main: dataOfTable(main), nested: nested.map(dataOfTable) };
}

/** Conditions that are copied to another thread, because they are not in shared tables. */
export function copiedConditions({ main, nested }: RuleTablesData): number {
  let sum = 0;
  for (const { steps } of [main, ...nested])
    for (const { table, rule } of steps) if (table === null) sum += sizeOfCondition(rule);
  return sum;
}

function sizeOfCondition(condition: Condition): number {
  const own = condition.is === "list" ? 0 : 1;
  return partsOf(condition).reduce((sum, part) => sum + sizeOfCondition(part), own);
}

/** What is made of the data of another thread. Throws `ProtocolError` where a database in it cannot be read. */
export function openTables({ main, nested }: RuleTablesData): RuleTables {
  return { main: openTable(main), nested: nested.map(openTable) };
}

/**
 * `root`: the number of the list to begin with; `ipOf` is called at most once, where rules ask for the address of a name.
 * Null: the tables cannot tell, for a fact is missing.
 */
export function decide(
  { main, nested }: RuleTables,
  root: number,
  facts: Facts,
  ipOf: () => Ip | null = () => null,
): FoundRule | null {
  const first = root === MAIN_LIST ? main : itemAt(nested, root);
  const walk = new Walk(first, nested, facts);
  let stop = walk.next();
  if (stop === "wants") {
    // A rule that only the main thread can tell says that it wants the address, and may do without.
    const ip = walk.wanted[0] === "ip" && !walk.isPartlyUnknown ? ipOf() : null;
    if (ip === null) return null;
    walk.facts = { ...walk.facts, ip };
    stop = walk.next();
  }
  if (stop === "wants") return null;
  if (stop === "end") return { target: NO_TARGET, list: root, position: 0, end: first.leads.length };
  const { list, listPosition: position, position: end } = walk;
  const number = list === first ? root : nested.indexOf(list);
  return { target: int32At(list.leads, position), list: number, position, end };
}
