/** What a router of rules is made of, and what it can be asked besides the way of a session. */
import type { Neighbours } from "#core/neighbours.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Decision, Router } from "#core/router.ts";
import type { FactName, Facts, Rule } from "#core/rule.ts";
import type { Metadata } from "#core/session.ts";
import type { Sniffed } from "#core/sniffer.ts";
import type { ProcessLookup } from "#platform/process-lookup.ts";
import type { RuleList, RuleListsInForce } from "./compile.ts";
import type { PassReason } from "./decision.ts";
import type { DirectQuestion, Proof } from "./direct-proof.ts";
import type { Observer } from "./tables/walk.ts";
import type { RuleCount } from "./rule-counters.ts";
import type { FindProcessMode, Prepared } from "./session-facts.ts";
import type { RouterSnapshot } from "./snapshot.ts";

export interface RouterEnv {
  readonly rules: readonly Rule[];
  readonly subRules: ReadonlyMap<string, readonly Rule[]>;
  /** Of another router: tables over the same rules are taken from there. Absent, null: there is none. */
  readonly before?: RuleListsInForce | null;
  mode(): "rule" | "global" | "direct";
  /** A proxy, a group or a built-in by name. */
  outbound(name: string): Outbound | null;
  readonly global: Outbound;
  readonly direct: Outbound;
  readonly resolver: Resolver;
  readonly processes: ProcessLookup;
  readonly neighbours: Neighbours;
  readonly findProcessMode: FindProcessMode;
  /** Absent: the destination as the client named it. What it throws (`DialError`) fails the session. */
  readonly prepare?: (metadata: Metadata, sniffed: Sniffed | null) => Prepared;
  nowMs(): number;
}

/** One row of `GET /rules`. */
export interface RuleView extends RuleCount {
  readonly rule: Rule;
  /** Number of records of GEOSITE and GEOIP data, else -1. */
  readonly size: number;
  readonly disabled: boolean;
  /** As of its matcher; null: it can match. */
  readonly unavailable: string | null;
}

export interface RuleRouter extends Router {
  readonly lists: RuleListsInForce;
  /** For threads that decide by themselves, until rules, lists, choices or the mode change. */
  snapshot(): RouterSnapshot;
  /** The `rules` list in file order, each made when it is read; nested lists are not shown. */
  views(): Iterable<RuleView>;
  /** Grows when rules are switched off or on. */
  readonly revision: number;
  /** Position → switched off? Positions that do not exist are ignored. Lasts until the router is replaced. */
  disable(changes: ReadonlyMap<number, boolean>): void;
  /** Routes as `route` does, reports to the observer why rules did not match, and counts nothing. */
  trace(metadata: Metadata, signal: AbortSignal, observer: TraceObserver): Promise<Decision>;
  /**
   * Does all traffic to this name and address leave by DIRECT, from any source and by any protocol? Looks nothing up.
   * `isDirect` is called with the targets as the rules name them.
   */
  proveDirect(question: DirectQuestion, isDirect: (target: Outbound) => boolean): Proof;
}

export interface TraceObserver extends Observer<RuleList> {
  looked(name: FactName, facts: Facts): void;
  /** The rule matched, but its target passes (PASS, PASS-RULE) or cannot carry UDP. */
  passed(list: RuleList, position: number, reason: PassReason): void;
}
