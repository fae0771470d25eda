import type { RulesControl } from "#core/control.ts";
import type { RuleRouter } from "#router/rule-router.ts";
import type { DnsStack } from "#runtime/names.ts";
import { explainView } from "./explain.ts";

/** The rules in force; `router` and `names` answer with those of the current runtime. `switched`: rules went off or on. */
export function rulesControl(
  router: () => RuleRouter,
  names: () => DnsStack,
  switched: () => void,
): RulesControl {
  return {
    list: () =>
      Iterator.from(router().views()).map(
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
      ),
    disable(changes) {
      router().disable(changes);
      switched();
    },
    explain: (question) => explainView(router(), names().dns, question),
  };
}
