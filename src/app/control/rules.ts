import type { RulesControl } from "#core/control.ts";
import type { RuleRouter } from "#router/rule-router.ts";
import type { DnsStack } from "#runtime/names.ts";
import { explainView } from "./explain.ts";

interface RulesHooks {
  /** Counters are about to be read: what has come and gone by now is counted. */
  readonly counted: () => void;
  /** Rules are about to go off or on: nothing is decided by them any more, and what was is counted. */
  readonly settled: () => void;
  /** They went off or on. */
  readonly switched: () => void;
}

/** The rules in force; `router` and `names` answer with those of the current runtime. */
export function rulesControl(
  router: () => RuleRouter,
  names: () => DnsStack,
  { counted, settled, switched }: RulesHooks,
): RulesControl {
  return {
    list: () => {
      counted();
      return Iterator.from(router().views()).map(
        ({ rule, size, disabled, unavailable, hitCount, hitAtMs, missCount, missAtMs }) => ({
          index: rule.index,
          type: rule.apiType,
          payload: rule.payload,
          target: rule.target,
          size,
          disabled,
          unavailable,
          hits: hitCount,
          lastHitAtMs: hitAtMs,
          misses: missCount,
          lastMissAtMs: missAtMs,
        }),
      );
    },
    disable(changes) {
      settled();
      router().disable(changes);
      switched();
    },
    explain: (question) => explainView(router(), names().dns, question),
  };
}
