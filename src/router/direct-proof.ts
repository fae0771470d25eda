/**
 * What a destination alone proves (kernel-direct.md §2.4). A rule that also depends on source, port, process or network
 * is undecided and skipped; when its target is not DIRECT, no later rule proves DIRECT.
 */
import type { Outbound } from "#core/outbound.ts";
import { unwrap } from "#core/outbound.ts";
import type { Rule } from "#core/rule.ts";
import type { InboundInfo, Ip } from "#core/session.ts";
import { int32At, itemAt, lastOf } from "#lib/at.ts";
import type { RuleList } from "./compile.ts";
import type { Walk } from "./tables/walk.ts";

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
  readonly #targets: readonly Outbound[];
  readonly #isDirect: (target: Outbound) => boolean;
  /** The first rule that may lead elsewhere, depending on what is not known. */
  #taint: Rule | null = null;

  /** `targets`: what rules lead to, by number. `isDirect` is asked of each that matters. */
  constructor(targets: readonly Outbound[], isDirect: (target: Outbound) => boolean) {
    this.#targets = targets;
    this.#isDirect = isDirect;
  }

  walk(walk: Walk<RuleList>): Proof {
    for (;;) {
      const stop = walk.next();
      if (stop === "end") return this.#verdict(null, true);
      if (stop === "wants") {
        const { list } = walk;
        const taint =
          this.#taint === null ? walk.pending.find((at) => !this.#leadsDirect(list, at)) : undefined;
        if (taint !== undefined) this.#taint = itemAt(list.rules, taint);
        walk.passOver();
        continue;
      }
      const { list, listPosition } = walk;
      const rule = itemAt(list.rules, listPosition);
      const target = itemAt(this.#targets, int32At(list.leads, listPosition));
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
  #leadsDirect({ leads }: RuleList, position: number): boolean {
    const target = this.#targets[int32At(leads, position)];
    return target !== undefined && this.#isDirect(target);
  }
}

function describe({ index, type, payload, target }: Rule): string {
  const where = index < 0 ? "sub-rule" : `rules[${index}]`;
  return `${where} ${[type, payload, target].filter((part) => part !== "").join(",")}`;
}
