/** What of the running program does not do what its configuration says: for the first page. */
import type { LogRecord, Proxy, ProxyProvider, Rule, RuleProvider } from "#ui/api/types.ts";
import type { Words } from "#ui/words/words.ts";
import { realProviders } from "./nodes.ts";

export interface Trouble {
  readonly text: string;
  /** Words of the program, or names; "": none. */
  readonly details: string;
  /** The page that shows more. */
  readonly page: "groups" | "rules" | "logs";
}

export interface Findings {
  readonly proxies: readonly Proxy[];
  readonly providers: readonly ProxyProvider[];
  /** Those that can match nothing. */
  readonly rules: readonly Rule[];
  readonly ruleProviders: readonly RuleProvider[];
  /** The newest last. */
  readonly warnings: readonly LogRecord[];
}

/** So many names or lines are said of each. */
const MOST_DETAILS = 3;

export function troublesOf(words: Words, findings: Findings): readonly Trouble[] {
  const { t } = words;
  const { proxies, providers, rules, ruleProviders, warnings } = findings;
  const lists = realProviders(providers);
  const nodes = [...proxies, ...lists.flatMap((list) => list.proxies)].filter(({ all }) => all === undefined);
  const unusable = nodes.filter(({ unavailable }) => unavailable !== undefined);
  const silent = nodes.filter(
    ({ unavailable, history }) => unavailable === undefined && history.at(-1)?.delay === 0,
  );
  const empty = [...lists, ...ruleProviders].filter(isEmpty);
  const trouble = (
    page: Trouble["page"],
    text: (count: number) => string,
    details: readonly string[],
  ): readonly Trouble[] =>
    details.length === 0 ? [] : [{ page, text: text(details.length), details: some(words, details) }];
  return [
    ...trouble(
      "groups",
      (count) => t("trouble.unusable", { count }),
      unusable.map(({ name, unavailable }) => `${name}: ${unavailable}`),
    ),
    ...trouble(
      "groups",
      (count) => t("trouble.silent", { count }),
      silent.map(({ name }) => name),
    ),
    ...trouble(
      "rules",
      (count) => t("trouble.deadRules", { count }),
      rules.map(({ type, payload, unavailable }) => `${type} ${payload}: ${unavailable}`),
    ),
    ...trouble(
      "groups",
      (count) => t("trouble.emptyProviders", { count }),
      empty.map(({ name }) => name),
    ),
    ...trouble(
      "logs",
      (count) => t("trouble.warnings", { count }),
      warnings.map(({ message }) => message).toReversed(),
    ),
  ];
}

function some(words: Words, texts: readonly string[]): string {
  const more = texts.length - MOST_DETAILS;
  return texts.slice(0, MOST_DETAILS).join("\n") + (more > 0 ? `\n… +${words.count(more)}` : "");
}

/** Fetched from elsewhere, and not once so far: the zero time and the epoch mean that. */
function isEmpty({ updatedAt = "", vehicleType }: ProxyProvider | RuleProvider): boolean {
  return vehicleType !== "Inline" && !(Date.parse(updatedAt) > 0);
}
