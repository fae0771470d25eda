/** `rules` and `sub-rules`: lines of `TYPE,payload,target[,param…]`. */
import { messageOf, ConfigError, UnusableError } from "#core/errors.ts";
import { Plain, show } from "#core/fields.ts";
import { inboundTypesOf } from "#core/protocol.ts";
import { suggestion } from "#lib/nearest-word.ts";
import type { RuleData, RuleOptions, RuleScope, RuleType } from "#core/rule.ts";
import { findCircles } from "./circles.ts";
import type { RuleConfig } from "./config.ts";
import type { Context, Registries } from "./context.ts";
import type { NameScope } from "./cross-checks.ts";
import { RULE_TYPES } from "./known-types.ts";
import type { Path } from "./report.ts";
import type { RuleSetNames } from "./rule-sets.ts";
import { itemAt, lastOf } from "#lib/at.ts";

/** Their payload may hold commas: the last item is the target and there are no parameters. */
const LAST_IS_TARGET: ReadonlySet<string> = new Set([
  "AND",
  "OR",
  "NOT",
  "SUB-RULE",
  "DOMAIN-REGEX",
  "PROCESS-NAME-REGEX",
  "PROCESS-PATH-REGEX",
]);

const PARAMS = ["no-resolve", "src"];

/** What other programs call types that are known here by another name. */
const RENAMED: ReadonlyMap<string, string> = new Map([
  ["FINAL", "MATCH"],
  ["HOST", "DOMAIN"],
  ["HOST-SUFFIX", "DOMAIN-SUFFIX"],
  ["HOST-KEYWORD", "DOMAIN-KEYWORD"],
]);

export interface RuleLine {
  /** Upper case. */
  readonly type: string;
  readonly payload: string;
  readonly target: string;
  /** Lower case. */
  readonly params: readonly string[];
}

/** Null when the line has too few items. Also used for rule lines outside the configuration. */
function splitRule(line: string): RuleLine | null {
  const parts = line.split(",").map((part) => part.trim());
  const type = itemAt(parts, 0).toUpperCase();
  if (type === "MATCH") {
    const target = parts[1] ?? "";
    return target === "" ? null : { type, payload: "", target, params: [] };
  }
  if (parts.length < 3) return null;
  if (!LAST_IS_TARGET.has(type)) {
    const [, payload, target, ...rest] = parts as [string, string, string, ...string[]];
    const params = rest.map((word) => word.toLowerCase()).filter((word) => word !== "");
    return target === "" ? null : { type, payload, target, params };
  }
  const payload = line.slice(line.indexOf(",") + 1, line.lastIndexOf(",")).trim();
  const target = lastOf(parts);
  return target === "" ? null : { type, payload, target, params: [] };
}

export function typesOf({ ruleTypes }: Registries): ReadonlyMap<string, RuleType> {
  return new Map(ruleTypes.map((entry) => [entry.type, entry]));
}

/** The rule of a line that was found good before. */
export function ruleOfLine(text: string, types: ReadonlyMap<string, RuleType>): RuleConfig {
  const line = splitRule(text);
  const type = line === null ? undefined : types.get(line.type);
  if (line === null || type === undefined) throw new Error(`${text} is no rule`);
  return ruleOf(text, line, type);
}

function ruleOf(text: string, { payload, target, params }: RuleLine, type: RuleType): RuleConfig {
  return Object.freeze({ text, type, payload, target, options: optionsOf(params) });
}

const NO_OPTIONS: RuleOptions = Object.freeze({ source: false, noResolve: false });
const NO_RESOLVE: RuleOptions = Object.freeze({ source: false, noResolve: true });
const OF_SOURCE: RuleOptions = Object.freeze({ source: true, noResolve: true });

/** One object each, for all rules together. */
function optionsOf(params: readonly string[]): RuleOptions {
  if (params.includes("src")) return OF_SOURCE;
  return params.includes("no-resolve") ? NO_RESOLVE : NO_OPTIONS;
}

const NOTHING_LOADED: RuleData = { size: -1, reads: [], match: () => undefined };

/** Reads lines against everything that they may name. */
export class RuleReader {
  readonly #context: Context;
  readonly #types: ReadonlyMap<string, RuleType>;
  readonly #knownTypes: ReadonlySet<string>;
  readonly #outbounds: ReadonlySet<string>;
  readonly #subRules: ReadonlySet<string>;
  readonly #ruleSets: RuleSetNames;
  #missingSets: string[] = [];
  readonly #scope: RuleScope;

  constructor(context: Context, { outbounds, subRules }: NameScope, ruleSets: RuleSetNames) {
    this.#context = context;
    this.#types = typesOf(context.registries);
    this.#knownTypes = new Set([...this.#types.keys(), ...RULE_TYPES]);
    this.#outbounds = outbounds;
    this.#subRules = subRules;
    this.#ruleSets = ruleSets;
    this.#scope = {
      ruleSet: (name) => {
        if (!ruleSets.has(name)) this.#missingSets.push(name);
        return NOTHING_LOADED;
      },
      geosite: () => NOTHING_LOADED,
      geoip: () => NOTHING_LOADED,
      asn: () => NOTHING_LOADED,
      inboundTypes: inboundTypesOf(context.registries.protocols),
    };
  }

  /** `label` precedes the index in messages: `rules`, `sub-rules[name]`. */
  readAll(items: readonly unknown[], path: Path, label: string): readonly RuleConfig[] {
    const rules: RuleConfig[] = [];
    for (const [at, item] of items.entries()) {
      const line = item instanceof Plain ? item.source : item;
      const here = [...path, at];
      if (typeof line !== "string") {
        this.#context.report.error(
          here,
          `${label}[${at}] [${show(item)}] error: expected a line TYPE,payload,target`,
        );
        continue;
      }
      const text = line.trim();
      const rule = this.#read(text, here, `${label}[${at}] [${text}]`);
      if (rule !== null) rules.push(rule);
    }
    return rules;
  }

  #read(text: string, path: Path, prefix: string): RuleConfig | null {
    const { report } = this.#context;
    if (text === "") {
      report.warning(path, `${prefix}: the line is empty and is left out`);
      return null;
    }
    const line = splitRule(text);
    if (line === null) {
      const [word = ""] = text.split(",", 1);
      const unknown = word === text ? null : this.#unknownType(word.trim().toUpperCase());
      const fault = unknown ?? "format invalid, expected TYPE,payload,target or MATCH,target";
      report.error(path, `${prefix} error: ${fault}`);
      return null;
    }
    const fault = this.#targetFault(line);
    if (fault !== null) report.error(path, `${prefix} error: ${fault}`);
    for (const param of line.params)
      if (!PARAMS.includes(param))
        report.warning(
          path,
          `${prefix} warning: unknown parameter ${show(param)}${suggestion(param, PARAMS)}`,
        );
    const type = this.#types.get(line.type);
    if (type === undefined) {
      this.#reportType(line, path, prefix);
      return null;
    }
    const rule = ruleOf(text, line, type);
    const wrong = this.#payloadFault(rule);
    if (wrong instanceof UnusableError)
      report.warning(path, `${prefix} warning: ${wrong.message}; the rule is left out`);
    else if (wrong !== null) report.error(path, `${prefix} error: ${messageOf(wrong)}`);
    return fault === null && wrong === null ? rule : null;
  }

  #targetFault({ type, target }: RuleLine): string | null {
    if (type === "SUB-RULE") {
      if (this.#subRules.has(target)) return null;
      return `sub-rule [${target}] not found${this.#context.report.suggest(target, this.#subRules)}`;
    }
    return this.#outbounds.has(target)
      ? null
      : `proxy [${target}] not found${this.#context.report.suggest(target, this.#outbounds)}`;
  }

  #payloadFault({ type, payload, options }: RuleConfig): Error | null {
    this.#missingSets = [];
    try {
      if (type.type === "RULE-SET" && !this.#ruleSets.has(payload)) this.#missingSets.push(payload);
      type.parse(payload, options, this.#scope);
    } catch (error) {
      if (this.#missingSets.length === 0) return error instanceof Error ? error : new Error(messageOf(error));
    }
    const [missing] = this.#missingSets;
    const fault = missing === undefined ? null : this.#ruleSets.fault(missing, []);
    return fault === null ? null : new ConfigError(fault);
  }

  #reportType({ type, payload }: RuleLine, path: Path, prefix: string): void {
    const { report } = this.#context;
    if (RULE_TYPES.includes(type)) {
      report.warning(path, `${prefix} warning: the type ${type} is not in this build; the rule is left out`);
      if (type === "RULE-SET" && !this.#ruleSets.has(payload))
        report.error(path, `${prefix} error: ${this.#ruleSets.fault(payload, [])}`);
      return;
    }
    report.error(path, `${prefix} error: ${this.#unknownType(type)}`);
  }

  /** Null where the type is known. */
  #unknownType(type: string): string | null {
    if (this.#knownTypes.has(type)) return null;
    const meant = RENAMED.get(type);
    const hint =
      meant === undefined ? this.#context.report.suggest(type, this.#knownTypes) : `; ${meant} is meant here`;
    return `unsupported rule type: ${type}${hint}`;
  }
}

/** Sub-rule lists that lead back to themselves; the message names the way. */
export function reportSubRuleCircles(
  context: Context,
  subRules: ReadonlyMap<string, readonly RuleConfig[]>,
): void {
  const targets = (name: string): readonly string[] =>
    (subRules.get(name) ?? []).filter(({ type }) => type.type === "SUB-RULE").map(({ target }) => target);
  for (const circle of findCircles(subRules.keys(), targets)) {
    const way = [...circle, circle[0]].join("->");
    context.report.error(["sub-rules", itemAt(circle, 0)], `sub-rules: circular references [${way}]`, "key");
  }
}
