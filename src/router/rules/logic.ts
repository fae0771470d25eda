/** AND, OR, NOT, and the condition of SUB-RULE. */
import { ConfigError, messageOf, UnusableError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { Matcher, ParsedCondition, RuleOptions, RuleScope, RuleType } from "#core/rule.ts";
import { splitConditions, unwrapBrackets } from "#router/condition-text.ts";
import { and, not, or } from "#router/tables/joined.ts";
import { lastOf } from "#lib/at.ts";

type FindType = (type: string) => RuleType | undefined;

/** `find` knows every rule type, these included, so that conditions nest. */
export function logicTypes(find: FindType): readonly RuleType[] {
  return [
    logicType(
      "AND",
      "AND",
      (parts) => [and(parts.map(matcherOf)), `(${parts.map(textOf).join(" && ")})`],
      find,
    ),
    logicType("OR", "OR", (parts) => [or(parts.map(matcherOf)), `(${parts.map(textOf).join(" || ")})`], find),
    logicType(
      "NOT",
      "NOT",
      ([only, ...more]) => {
        if (only === undefined || more.length > 0)
          throw new ConfigError(
            `NOT takes one condition, got ${more.length + (only ? 1 : 0)}: write ((TYPE,payload))`,
          );
        return [not(only.matcher), `(!${only.payload})`];
      },
      find,
    ),
    subRule(find),
  ];
}

const matcherOf = (part: ParsedCondition) => part.matcher;
const textOf = (part: ParsedCondition) => part.payload;

function logicType(
  type: string,
  apiType: string,
  join: (parts: readonly ParsedCondition[]) => readonly [Matcher, string],
  find: FindType,
): RuleType {
  return {
    type,
    apiType,
    allowsOptions: false,
    parse(text, _options, scope) {
      const items = splitConditions(text.trim());
      if (items.length === 0)
        throw new ConfigError(`${type} needs conditions: write ((TYPE,payload),(TYPE,payload))`);
      const [matcher, payload] = join(items.map((item) => parseItem(item, scope, find)));
      return { matcher, payload };
    },
  };
}

/** SUB-RULE,(NETWORK,udp),name: where the condition holds, the list `name` is tried. */
function subRule(find: FindType): RuleType {
  return {
    type: "SUB-RULE",
    apiType: "SubRules",
    allowsOptions: false,
    parse(text, _options, scope) {
      const { matcher } = parseItem(unwrapBrackets(text.trim()), scope, find);
      return { matcher, payload: text.trim() };
    },
  };
}

const OPTION_WORDS = new Set(["no-resolve", "src"]);

/** `TYPE,payload[,no-resolve][,src]`, or AND, OR, NOT with their brackets. The answer's payload is `(TYPE,payload)`. */
function parseItem(item: string, scope: RuleScope, find: FindType): ParsedCondition {
  const comma = item.indexOf(",");
  const word = (comma < 0 ? item : item.slice(0, comma)).trim().toUpperCase();
  const type = find(word);
  if (type === undefined) throw new ConfigError(`unknown rule type ${show(word)} in a condition`);
  if (word === "MATCH" || word === "SUB-RULE")
    throw new ConfigError(`${word} cannot stand inside a condition: make it a rule of its own`);
  const [payload, options] = type.allowsOptions
    ? splitOptions(item.slice(comma + 1))
    : [item.slice(comma + 1), NO_OPTIONS];
  if (comma < 0) throw new ConfigError(`${word} has no payload: write (${word},payload)`);
  try {
    const parsed = type.parse(payload.trim(), options, scope);
    return { ...parsed, payload: `(${parsed.apiType ?? type.apiType},${parsed.payload})` };
  } catch (error) {
    const Kind = error instanceof UnusableError ? UnusableError : ConfigError;
    throw new Kind(`${word}: ${messageOf(error)}`, { cause: error });
  }
}

const NO_OPTIONS: RuleOptions = { noResolve: false, source: false };

function splitOptions(text: string): readonly [payload: string, options: RuleOptions] {
  const parts = text.split(",").map((part) => part.trim());
  const words = new Set<string>();
  while (parts.length > 1 && OPTION_WORDS.has(lastOf(parts).toLowerCase()))
    words.add(parts.pop()?.toLowerCase() ?? "");
  const source = words.has("src");
  return [parts.join(","), { source, noResolve: source || words.has("no-resolve") }];
}
