/** SUB-RULE must lead somewhere, and never back to where it came from. */
import { ConfigError } from "#core/errors.ts";
import type { Rule } from "#core/rule.ts";
import type { Steps } from "#lib/steps.ts";
import { lastOf } from "#lib/at.ts";
import { RULES_AT_ONCE } from "./compile.ts";

/** Throws `ConfigError` naming the rule whose list does not exist, or the circle as `a->b->a`. */
export function* checkLists(
  rules: readonly Rule[],
  lists: ReadonlyMap<string, readonly Rule[]>,
): Steps<void> {
  yield* checkExist("rules", rules, lists);
  for (const [name, inner] of lists) yield* checkExist(`sub-rules[${name}]`, inner, lists);
  const done = new Set<string>();
  for (const name of lists.keys()) checkCircle([name], lists, done);
}

function* checkExist(
  where: string,
  rules: readonly Rule[],
  lists: ReadonlyMap<string, readonly Rule[]>,
): Steps<void> {
  for (const [at, { type, target }] of rules.entries()) {
    if (type === "SUB-RULE" && !lists.has(target))
      throw new ConfigError(`${where}[${at}]: sub-rule "${target}" not found: add it to sub-rules`);
    if (at % RULES_AT_ONCE === 0) yield;
  }
}

function checkCircle(
  path: readonly string[],
  lists: ReadonlyMap<string, readonly Rule[]>,
  done: Set<string>,
): void {
  const name = lastOf(path);
  if (done.has(name)) return;
  for (const { type, target } of lists.get(name) ?? []) {
    if (type !== "SUB-RULE") continue;
    if (path.includes(target))
      throw new ConfigError(
        `sub-rules[${name}]: circular reference ${[...path.slice(path.indexOf(target)), target].join("->")}`,
      );
    checkCircle([...path, target], lists, done);
  }
  done.add(name);
}
