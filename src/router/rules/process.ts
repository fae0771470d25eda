/** Rules over the local program that opened the connection: its name or its path, exactly, by expression, by glob. */
import { UnusableError } from "#core/errors.ts";
import type { TextTest } from "#core/condition.ts";
import type { Matcher, RuleType } from "#core/rule.ts";
import { compileLinear } from "#router/linear-pattern.ts";
import { openCondition } from "#router/tables/open-condition.ts";

type Part = "name" | "path";
type Compile = (payload: string, part: Part) => Matcher;

function processRule(type: string, apiType: string, part: Part, compile: Compile): RuleType {
  return {
    type,
    apiType,
    allowsOptions: false,
    parse(text) {
      const payload = text.trim();
      if (payload === "")
        throw new UnusableError(
          `${type} needs a ${part}: write ${part === "name" ? "curl" : "/usr/bin/curl"}`,
        );
      return { matcher: compile(payload, part), payload };
    },
  };
}

const byText =
  (test: TextTest): Compile =>
  (payload, part) =>
    openCondition({ is: "program", part, test, text: payload.toLowerCase() });
const exact = byText("equals");
const byGlob = byText("glob");
/** An expression with look-around is no plain one, and only the thread that compiled it can run it. */
const byRegex: Compile = (payload, part) => {
  const pattern = compileLinear(payload);
  if (pattern instanceof RegExp)
    return openCondition({ is: "program", part, test: "expression", text: pattern.source });
  return {
    reads: ["process"],
    match: ({ process }) => {
      if (process === undefined) return undefined;
      const value = process?.[part] ?? null;
      return value !== null && pattern.test(value.toLowerCase());
    },
  };
};

/** In the order name, path: exact, -REGEX, -WILDCARD. */
export const processRules: readonly RuleType[] = [
  processRule("PROCESS-NAME", "ProcessName", "name", exact),
  processRule("PROCESS-PATH", "ProcessPath", "path", exact),
  processRule("PROCESS-NAME-REGEX", "ProcessNameRegex", "name", byRegex),
  processRule("PROCESS-PATH-REGEX", "ProcessPathRegex", "path", byRegex),
  processRule("PROCESS-NAME-WILDCARD", "ProcessNameWildcard", "name", byGlob),
  processRule("PROCESS-PATH-WILDCARD", "ProcessPathWildcard", "path", byGlob),
];
