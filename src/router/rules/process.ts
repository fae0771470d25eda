/** Rules over the local program that opened the connection: its name or its path, exactly, by expression, by glob. */
import { UnusableError } from "#core/errors.ts";
import type { Facts, RuleType } from "#core/rule.ts";
import { compileGlob } from "#router/glob.ts";
import { compileLinear } from "#router/linear-pattern.ts";

type Part = "name" | "path";
type Compile = (payload: string) => (text: string) => boolean;

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
      const test = compile(payload);
      const match = ({ process }: Facts) => {
        if (process === undefined) return undefined;
        const value = process?.[part] ?? null;
        return value !== null && test(value.toLowerCase());
      };
      return { matcher: { reads: ["process"], match }, payload };
    },
  };
}

const exact: Compile = (payload) => {
  const wanted = payload.toLowerCase();
  return (text) => text === wanted;
};
const byRegex: Compile = (payload) => {
  const pattern = compileLinear(payload);
  return (text) => pattern.test(text);
};
const byGlob: Compile = (payload) => compileGlob(payload.toLowerCase());

/** In the order name, path: exact, -REGEX, -WILDCARD. */
export const processRules: readonly RuleType[] = [
  processRule("PROCESS-NAME", "ProcessName", "name", exact),
  processRule("PROCESS-PATH", "ProcessPath", "path", exact),
  processRule("PROCESS-NAME-REGEX", "ProcessNameRegex", "name", byRegex),
  processRule("PROCESS-PATH-REGEX", "ProcessPathRegex", "path", byRegex),
  processRule("PROCESS-NAME-WILDCARD", "ProcessNameWildcard", "name", byGlob),
  processRule("PROCESS-PATH-WILDCARD", "ProcessPathWildcard", "path", byGlob),
];
