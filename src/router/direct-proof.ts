/**
 * What a destination alone proves (kernel-direct.md §2.4). A rule that also depends on source, port, process or network
 * is undecided and skipped; when its target is not DIRECT, no later rule proves DIRECT.
 */
import type { Outbound } from "#core/outbound.ts";
import { unwrap } from "#core/outbound.ts";
import type { Rule } from "#core/rule.ts";
import type { InboundInfo, Ip } from "#core/session.ts";
import { valueAt, lastOf } from "#lib/at.ts";
import type { Walk } from "./match.ts";

export interface DirectQuestion {
  readonly host: string | null;
  readonly ip: Ip;
  /** Of the listener that the traffic would come in by. */
  readonly inbound: Pick<InboundInfo, "ruleList" | "target">;
}

export interface Proof {
  readonly direct: boolean;
  /** The rule or the setting that decided, for a person. */
  readonly reason: string;
}

export class DirectProof {
  readonly #targets: ReadonlyMap<string, Outbound>;
  readonly #isDirect: (target: Outbound) => boolean;
  /** The first rule that may lead elsewhere, depending on what is not known. */
  #taint: Rule | null = null;

  /** `targets`: what rules name. `isDirect` is asked of each that matters. */
  constructor(targets: ReadonlyMap<string, Outbound>, isDirect: (target: Outbound) => boolean) {
    this.#targets = targets;
    this.#isDirect = isDirect;
  }

  walk(walk: Walk): Proof {
    for (;;) {
      const stop = walk.next();
      if (stop === "end") return this.#verdict(null, true);
      if (stop === "wants") {
        this.#taint ??= walk.pending.find((rule) => !this.#leadsDirect(rule)) ?? null;
        walk.passOver();
        continue;
      }
      const rule = walk.matched;
      const target = valueAt(this.#targets, rule.target);
      const { passes } = lastOf(unwrap(target, null));
      if (passes === undefined) return this.#verdict(rule, this.#isDirect(target));
      if (passes === "rule") walk.leaveAll();
    }
  }

  #verdict(rule: Rule | null, direct: boolean): Proof {
    const decided = rule === null ? "no rule matches: DIRECT" : describe(rule);
    if (!direct) return { direct, reason: decided };
    const taint = this.#taint;
    if (taint === null) return { direct, reason: decided };
    return { direct: false, reason: `${describe(taint)} depends on more than the destination` };
  }

  /** A list of sub-rules may lead anywhere. */
  #leadsDirect(rule: Rule): boolean {
    const target = rule.type === "SUB-RULE" ? undefined : this.#targets.get(rule.target);
    return target !== undefined && this.#isDirect(target);
  }
}

function describe({ index, type, payload, target }: Rule): string {
  const where = index < 0 ? "sub-rule" : `rules[${index}]`;
  return `${where} ${[type, payload, target].filter((part) => part !== "").join(",")}`;
}
