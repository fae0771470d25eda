/** Lists of nodes that come from elsewhere: the contents of a proxy-provider. Nothing in them is trusted. */
import { compilePattern } from "#core/pattern.ts";
import type { Diagnostic, ProxyConfig } from "./config.ts";
import { Context } from "./context.ts";
import { peek } from "./items.ts";
import type { ParseEnv } from "./parse.ts";
import { ProxyReader } from "./proxies.ts";
import { Report } from "./report.ts";
import type { ProxyProviderConfig } from "./sections/index.ts";
import { fold, isMapValue } from "./shape.ts";
import { readYaml } from "./yaml.ts";

export type NodesResult =
  | { readonly proxies: readonly ProxyConfig[]; readonly warnings: readonly Diagnostic[] }
  | { readonly errors: readonly Diagnostic[] };

export type NodesEnv = Pick<ParseEnv, "registries" | "files">;
export type NodeOverride = Pick<ProxyProviderConfig, "override" | "dialerProxy">;

const NOWHERE = { line: 0, column: 0 };

/** The items under `proxies` of a YAML text, to be given to `parseNodes`; a Diagnostic where there are none. */
export function nodeItems(text: string): readonly unknown[] | Diagnostic {
  const { root, faults, locate } = readYaml(text);
  const fault = (message: string, place = NOWHERE): Diagnostic => ({
    severity: "error",
    ...place,
    path: "",
    message,
  });
  const [first] = faults;
  if (first !== undefined) return fault(first.message, first.place);
  const items = root?.["proxies"];
  return Array.isArray(items)
    ? (items as unknown[])
    : fault("file must have a `proxies` field", locate([], "value"));
}

/**
 * Nodes from maps: items of YAML, of a provider's `payload`, or what share links were turned into. Items without name
 * or type are skipped, a name that was there already is dropped with its node; one bad node refuses the whole list.
 * Overrides act first on fields, then on names: replacements, prefix, suffix.
 */
export function parseNodes(items: readonly unknown[], overrides: NodeOverride, env: NodesEnv): NodesResult {
  const report = new Report(() => NOWHERE);
  const reader = new ProxyReader(new Context(report, env.registries, env.files));
  const rename = renamer(overrides.override);
  const fields = overriddenFields(overrides);
  const seen = new Set<string>();
  const wanted: unknown[] = [];
  for (const item of items) {
    const written = peek(item, "name", "hyphen");
    if (!isMapValue(item) || written === null || peek(item, "type", "hyphen") === null) continue;
    const name = rename(written);
    if (seen.has(name)) continue;
    seen.add(name);
    const own = Object.entries(item).filter(
      ([key]) => !Object.hasOwn({ ...fields, name }, fold(key, "hyphen")),
    );
    wanted.push({ ...Object.fromEntries(own), ...fields, name });
  }
  const { proxies } = reader.readAll(wanted, ["proxies"], "proxy", new Set());
  if (report.failed) return { errors: report.errors };
  return { proxies: proxies.map(({ proxy }) => proxy), warnings: report.warnings };
}

const NAME_KEYS = new Set(["additionalPrefix", "additionalSuffix", "proxyName", "overrideExpr"]);

/** Fields to lay over every node, by their names in files. */
function overriddenFields({ override, dialerProxy }: NodeOverride): Readonly<Record<string, unknown>> {
  const given = Object.entries(override).filter(([key, value]) => value !== null && !NAME_KEYS.has(key));
  const fields = Object.fromEntries(
    given.map(([key, value]) => [key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), value]),
  );
  return dialerProxy === "" || override.dialerProxy !== null
    ? fields
    : { ...fields, "dialer-proxy": dialerProxy };
}

function renamer(override: NodeOverride["override"]): (name: string) => string {
  const replacements = override.proxyName.map(
    ({ pattern, target }) => [compilePattern(pattern, "g"), target] as const,
  );
  return (name) => {
    const replaced = replacements.reduce((text, [pattern, target]) => text.replaceAll(pattern, target), name);
    return override.additionalPrefix + replaced + override.additionalSuffix;
  };
}
