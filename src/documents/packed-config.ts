/** What a configuration text was found to be, on its way from the thread that read it. */
import type { Config } from "#config/config.ts";
import type { Registries } from "#config/context.ts";
import type { ParseResult } from "#config/parse.ts";
import type { Diagnostic } from "#config/report.ts";
import { ruleOfLine, typesOf } from "#config/rules.ts";
import type { Slices } from "#core/slices.ts";
import type { Steps } from "#lib/steps.ts";
import { pack, unpack, type PackedValue, type References } from "./packed.ts";

/** Rules are sent as their lines: what else a rule has follows from it, and three hundred thousand are no rarity. */
type Sent = Omit<Config, "rules" | "subRules"> & {
  readonly rules: readonly string[];
  readonly subRules: ReadonlyMap<string, readonly string[]>;
};

export interface PackedResult {
  readonly errors: readonly Diagnostic[] | null;
  readonly warnings: readonly Diagnostic[];
  readonly config: PackedValue;
}

export function packResult({ config, errors, warnings }: ParseResult, registries: Registries): PackedResult {
  if (config === undefined) return { errors, warnings, config: [] };
  const linesOf = (rules: Config["rules"]): readonly string[] => rules.map(({ text }) => text);
  const sent: Sent = {
    ...config,
    rules: linesOf(config.rules),
    subRules: new Map([...config.subRules].map(([name, rules]) => [name, linesOf(rules)])),
  };
  return { errors: null, warnings, config: pack(sent, referencesTo(registries)) };
}

/** The same value that was packed, frozen, made in slices. */
export async function unpackResult(
  { config, errors, warnings }: PackedResult,
  registries: Registries,
  slices: Slices,
): Promise<ParseResult> {
  if (errors !== null) return { errors, warnings };
  const sent = (await unpack(config, slices, referencesTo(registries))) as Sent;
  const types = typesOf(registries);
  const subRules = new Map<string, Config["rules"]>();
  for (const [name, lines] of sent.subRules) subRules.set(name, await slices.run(rulesOf(lines, types)));
  const rules = await slices.run(rulesOf(sent.rules, types));
  return { config: Object.freeze({ ...sent, rules, subRules }), warnings };
}

function* rulesOf(lines: readonly string[], types: ReturnType<typeof typesOf>): Steps<Config["rules"]> {
  const rules: Config["rules"][number][] = [];
  for (const line of lines) {
    rules.push(ruleOfLine(line, types));
    yield;
  }
  return Object.freeze(rules);
}

/** Both threads have the same registries. */
function referencesTo({ protocols, groupKinds }: Registries): References {
  const shared: readonly object[] = [...protocols, ...groupKinds];
  const names = new Map(shared.map((entry, at) => [entry, String(at)]));
  return { nameOf: (value) => names.get(value) ?? null, named: (name) => shared[Number(name)] };
}
