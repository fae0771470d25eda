/** The registry of rule types: one line each. */
import type { RuleType } from "#core/rule.ts";

export const RULE_TYPES: readonly RuleType[] = [];
