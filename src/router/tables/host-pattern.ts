import type { Matcher } from "#core/rule.ts";
import { openCondition } from "./open-condition.ts";

/** A name is tested by it. One with look-around is no plain expression: only the thread that compiled it can run it. */
export function hostPattern(pattern: { test(text: string): boolean }): Matcher {
  if (pattern instanceof RegExp)
    return openCondition({ is: "host", test: "expression", text: pattern.source });
  return {
    reads: ["host"],
    match: ({ host }) => (host === undefined ? undefined : host !== null && pattern.test(host)),
  };
}
