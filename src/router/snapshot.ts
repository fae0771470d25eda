/** What a router decides by at one moment, for threads that decide by themselves, and what becomes of their decisions. */
import type { AddressOrigin } from "#core/dial-plan.ts";
import { isGroup, type Outbound } from "#core/outbound.ts";
import type { Decision } from "#core/router.ts";
import type { AddressRecords, Facts } from "#core/rule.ts";
import type { Destination, Ip, Metadata } from "#core/session.ts";
import { itemAt, lastOf } from "#lib/at.ts";
import type { RuleList, RuleListsInForce } from "./compile.ts";
import { decisionBy } from "./decision.ts";
import { factsOf, type FindProcessMode, type Prepared } from "./session-facts.ts";
import {
  dataOfTables,
  MAIN_LIST,
  NO_TARGET,
  UNRULED,
  type FoundRule,
  type RuleTablesData,
} from "./tables/decide.ts";
import { Walk } from "./tables/walk.ts";

/** From a target to the leaf, the leaf last. */
type Chain = readonly Outbound[];

/** How another thread came by an address. */
export interface MeantBy {
  readonly ipFrom: AddressOrigin;
  /** The name that the fake address in the metadata stands for; null: it is none. */
  readonly faked: string | null;
}

export interface SnapshotParts {
  readonly lists: RuleListsInForce;
  /** What rules lead to, by number. */
  readonly targets: readonly Outbound[];
  readonly direct: Outbound;
  /** What the mode leads to; null: rules decide. */
  readonly fixed: Outbound | null;
  readonly findProcessMode: FindProcessMode;
  /** A rule of the main list has matched, or none: position, or the length of the list. */
  readonly count: (end: number) => void;
}

/**
 * Choices of groups are those of the moment in which it is made. Targets are numbered as rules lead to them; those of the mode
 * and of listeners follow.
 */
export class RouterSnapshot {
  readonly tables: RuleTablesData;
  /** By number of the target plus one; the first is DIRECT, for connections that no rule matches. Null: see `chainOf`. */
  readonly chains: (Chain | null)[];
  /** The number of what the mode leads to; null: rules decide. */
  readonly fixed: number | null;
  readonly #parts: SnapshotParts;

  constructor(parts: SnapshotParts) {
    const { lists, targets, direct, fixed } = parts;
    this.#parts = parts;
    this.tables = dataOfTables(lists);
    this.chains = [direct, ...targets].map(chainOf);
    this.fixed = fixed === null ? null : this.numberOf(fixed);
  }

  /** The number of a target that no rule leads to: it is behind those that rules lead to. */
  numberOf(target: Outbound): number {
    return this.chains.push(chainOf(target)) - 2;
  }

  /** Groups still pick what they did. */
  get isCurrent(): boolean {
    return this.chains.every((chain) => chain === null || isSame(chain, chainOf(itemAt(chain, 0))));
  }

  /** The number of a listener's own rule list, as the router takes it. */
  rootOf(ruleList: string | null): number {
    const { nested } = this.#parts.lists;
    return ruleList === null ? MAIN_LIST : nested.findIndex(({ name }) => name === ruleList);
  }

  /**
   * The decision that another thread has made on a session; it is counted. `ip` is what it has dialled: of a client that has
   * asked for a name the metadata say no address, and of one that has asked for a fake address they say that.
   */
  decided(found: FoundRule, metadata: Metadata, ip: Ip, { ipFrom, faked }: MeantBy): Decision {
    const { findProcessMode, count } = this.#parts;
    const prepared = preparedBy(metadata.destination, ip, ipFrom === "hosts", faked);
    const known = factsOf(metadata, prepared, findProcessMode);
    const facts = ipFrom === "rules" ? { ...known, ip } : known;
    const chain = itemAt(this.chains, found.target + 1);
    if (chain === null) throw new Error("a thread has decided for a target that is not for threads");
    if (found.list === UNRULED) return { ...decisionBy(chain, prepared, null, { facts }), unruled: true };
    const root = this.#list(this.rootOf(metadata.inbound.ruleList));
    if (root === this.#parts.lists.main) count(found.end);
    if (found.target === NO_TARGET) return decisionBy(chain, prepared, null, { facts });
    const list = this.#list(found.list);
    const entered = list === root ? null : itemAt(root.rules, found.end);
    return decisionBy(chain, prepared, itemAt(list.rules, found.position), { facts, entered });
  }

  /** What databases say of a decision by rules, for those who look at it. */
  withRecords(decision: Decision, ruleList: string | null, ipFrom: AddressOrigin): Decision {
    const { rule, facts } = decision;
    const records = rule === null ? null : this.#recordsAt(facts, ruleList, ipFrom);
    return records === null ? decision : { ...decision, records };
  }

  /** What rules asked a resolver for they did not know before. */
  #recordsAt(facts: Facts, ruleList: string | null, ipFrom: AddressOrigin): AddressRecords | null {
    const { ip: _, ...before } = facts;
    const isAsked = ipFrom === "rules";
    const root = this.#list(this.rootOf(ruleList));
    const walk = new Walk(root, this.#parts.lists.nested, isAsked ? before : facts);
    let stop = walk.next();
    if (isAsked && stop === "wants") {
      walk.facts = facts;
      stop = walk.next();
    }
    return stop === "wants" ? null : walk.records;
  }

  #list(number: number): RuleList {
    const { main, nested } = this.#parts.lists;
    return number < 0 ? main : itemAt(nested, number);
  }
}

/** As `prepare` of the DNS engine has it; `isPinned`: the hosts table has this address for the name. */
function preparedBy(asked: Destination, ip: Ip, isPinned: boolean, faked: string | null): Prepared {
  const destination = faked === null ? asked : { ...asked, host: faked, ip: null };
  const dnsMode = faked === null ? (isPinned ? "hosts" : "normal") : "fake-ip";
  if (!isPinned) return { destination, dnsMode };
  return { destination: { ...destination, ip }, dial: { ...destination, host: null, ip }, dnsMode };
}

function isSame(chain: Chain, now: Chain | null): boolean {
  return now?.length === chain.length && chain.every((outbound, at) => outbound === now[at]);
}

/** Null: a group picks anew for each session. */
function chainOf(target: Outbound): Chain | null {
  const chain = [target];
  for (let at = target; isGroup(at);) {
    if (at.isSteady !== true) return null;
    at = at.pick(null);
    chain.push(at);
  }
  return lastOf(chain).passes === undefined ? chain : null;
}
