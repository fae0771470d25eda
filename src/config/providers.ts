/** `proxy-providers` and `rule-providers`: their definitions, and the nodes that are written into the file. */
import { httpUrlFault } from "#core/fields.ts";
import type { Context, Issue } from "./context.ts";
import { filterFault } from "./group-fields.ts";
import { reportIssues } from "./items.ts";
import type { ProxyReader } from "./proxies.ts";
import type { Path } from "./report.ts";
import { RuleSetNames, type Behavior } from "./rule-sets.ts";
import type { ProxyProviderConfig, RuleProviderConfig } from "./sections/index.ts";
import { proxyProvider } from "./sections/proxy-providers.ts";
import { ruleProvider } from "./sections/rule-providers.ts";

export interface ProxyProviders {
  readonly configs: ReadonlyMap<string, ProxyProviderConfig>;
  /** Also of those that could not be read. */
  readonly names: ReadonlySet<string>;
}

export function readProxyProviders(context: Context, value: unknown, nodes: ProxyReader): ProxyProviders {
  const { report } = context;
  const configs = new Map<string, ProxyProviderConfig>();
  const entries = context.entries(value, ["proxy-providers"]);
  for (const [name, item] of entries) {
    const path: Path = ["proxy-providers", name];
    const prefix = `parse proxy provider ${name} error`;
    if (name === "default") report.error(path, `${prefix}: the name default is reserved`, "key");
    const read = context.read(proxyProvider, item, path, {
      match: "case",
      prefix: `${prefix}: `,
      tolerant: true,
      explain: explain(context, path, prefix),
    });
    if (read === null) continue;
    warnOfSource(context, read, path, prefix);
    const testUrl = usableTestUrl(
      context,
      read.healthCheck?.url ?? null,
      [...path, "health-check", "url"],
      prefix,
    );
    for (const [key, source] of [
      ["filter", read.filter],
      ["exclude-filter", read.excludeFilter],
    ] as const) {
      const fault = filterFault(source);
      if (fault !== null) report.error([...path, key], `${prefix}: '${key}' ${fault}`);
    }
    nodes.readAll(read.payload, [...path, "payload"], `${prefix}: proxy`, new Set());
    const healthCheck = read.healthCheck === null ? null : { ...read.healthCheck, url: testUrl };
    configs.set(name, { name, ...read, healthCheck });
  }
  return { configs, names: new Set(entries.map(([name]) => name)) };
}

export interface RuleProviders {
  readonly configs: ReadonlyMap<string, RuleProviderConfig>;
  readonly names: RuleSetNames;
}

export function readRuleProviders(context: Context, value: unknown): RuleProviders {
  const configs = new Map<string, RuleProviderConfig>();
  const behaviors = new Map<string, Behavior | null>();
  for (const [name, item] of context.entries(value, ["rule-providers"])) {
    const path: Path = ["rule-providers", name];
    const prefix = `parse rule provider ${name} error`;
    const read = context.read(ruleProvider, item, path, {
      match: "case",
      prefix: `${prefix}: `,
      tolerant: true,
      explain: explain(context, path, prefix),
    });
    behaviors.set(name, read?.behavior ?? null);
    if (read === null) continue;
    warnOfSource(context, read, path, prefix);
    configs.set(name, { name, ...read });
  }
  return { configs, names: new RuleSetNames(behaviors, context.report) };
}

type Source = Pick<ProxyProviderConfig, "lack">;

function warnOfSource({ report }: Context, { lack }: Source, path: Path, prefix: string): void {
  if (lack === null) return;
  const loss = lack.key === "url" || lack.key === "path" ? "nothing is fetched" : "the list is empty";
  report.warning([...path, lack.key], `${prefix}: '${lack.key}' ${lack.why}; ${loss}`);
}

/** A test page that is no URL is done without. */
export function usableTestUrl(
  { report }: Context,
  url: string | null,
  path: Path,
  prefix: string,
): string | null {
  const fault = url === null || url === "" ? null : httpUrlFault(url);
  if (fault !== null) report.warning(path, `${prefix}: 'url' ${fault.message}; the default page is tested`);
  return fault === null ? url || null : null;
}

function explain(context: Context, path: Path, prefix: string): (issues: readonly Issue[]) => void {
  return (issues) => reportIssues(context, issues, path, prefix);
}
