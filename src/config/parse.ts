/** The whole file: text to a frozen value, or every error of it at once. */
import type { FileGuard, SafeFiles } from "#core/files.ts";
import type { z } from "zod";
import type { Config, RuleConfig } from "./config.ts";
import { Context, parseSafely, type Registries } from "./context.ts";
import {
  checkBackup,
  checkController,
  checkDnsListeners,
  checkManagedListeners,
  checkPortal,
  checkProxyOf,
  checkTimeDialer,
  checkTun,
  warnOfProviderNames,
  withKnownSets,
} from "./cross-checks.ts";
import { buildDns } from "./dns-build.ts";
import { fileFaults } from "./file-uses.ts";
import { folderUse, withAcmeFile, type AcmeScope } from "./acme-keys.ts";
import { freezePlain } from "./freeze.ts";
import { liftGeneral, maskIpv6 } from "./general-build.ts";
import { warnOfInertKeys } from "./inert-keys.ts";
import { readGroups } from "./groups.ts";
import { BUILT_INS, GLOBAL } from "./known-types.ts";
import { portListeners, readListeners } from "./listeners.ts";
import { readProxyProviders, readRuleProviders } from "./providers.ts";
import { dialerProxyFaults, ProxyReader } from "./proxies.ts";
import { Report, type Path, type Diagnostic } from "./report.ts";
import type { RuleSetNames } from "./rule-sets.ts";
import { reportSubRuleCircles, RuleReader } from "./rules.ts";
import { readHosts } from "./sections/hosts.ts";
import { BLOCKS, FLAT, TOP_LEVEL } from "./sections/index.ts";
import { legacyWarnings } from "./sections/legacy.ts";
import { isMapValue } from "./shape.ts";
import { buildSniffer } from "./sniffer-build.ts";
import { readTrafficControl } from "./traffic-control.ts";
import { readTunnels } from "./tunnels.ts";
import { readYaml, type YamlFile, type YamlMap } from "./yaml.ts";

export interface ParseEnv {
  readonly registries: Registries;
  readonly files: Pick<SafeFiles, "resolve">;
  /** `global-ua` where the file has none. */
  readonly userAgent: string;
  /** `geodata-mode` where the file has none (`-m`). */
  readonly geodataMode?: boolean;
  /** Absent: nothing is known of what lies on the disk. */
  readonly guard?: FileGuard;
}

export type ParseResult =
  | { readonly config: Config; readonly errors?: never; readonly warnings: readonly Diagnostic[] }
  | {
      readonly config?: never;
      /** Sorted by place, never empty. */
      readonly errors: readonly Diagnostic[];
      readonly warnings: readonly Diagnostic[];
    };

/** Reads nothing but what `files.resolve` and `guard` look at; throws nothing that the text could cause. */
export function parseConfig(text: string, env: ParseEnv): ParseResult {
  const yaml = readYaml(text);
  const report = new Report(yaml.locate);
  for (const { position, path, message } of yaml.faults) report.errorAt(position, path, message);
  for (const { position, path, message } of yaml.warnings) report.warningAt(position, path, message);
  const config =
    yaml.root === null
      ? null
      : readRoot(
          yaml.root,
          yaml,
          new Context(report, env.registries, env.files, (path) => yaml.emptyKeys(path)),
          env,
        );
  const { errors, warnings } = report;
  if (config === null || errors.length > 0) return { errors, warnings };
  return { config: freezePlain({ ...config, warnings }), warnings };
}

type WithoutWarnings = Omit<Config, "warnings">;

/** Every known key many times over: more are no configuration, and each would cost a warning. */
const MOST_TOP_KEYS = 10_000;

function saysEveryOrigin(root: YamlMap): boolean {
  const cors = root["external-controller-cors"];
  const origins = isMapValue(cors) ? cors["allow-origins"] : null;
  return origins === "*" || (Array.isArray(origins) && origins.includes("*"));
}

function readRoot(root: YamlMap, yaml: YamlFile, context: Context, env: ParseEnv): WithoutWarnings | null {
  const keys = Object.keys(root).length;
  if (keys > MOST_TOP_KEYS) {
    const message = `expected the settings of a configuration, got ${keys} keys; at most ${MOST_TOP_KEYS} can stand here`;
    context.report.error([], message);
    return null;
  }
  warnOfUnknownKeys(root, yaml, context);
  warnOfEmptyEntries(yaml, context);
  const flat = {
    general: readFlat(FLAT.general, root, context),
    controller: readFlat(FLAT.controller, root, context),
    geodata: readFlat(FLAT.geodata, root, context),
    legacy: readFlat(FLAT.legacy, root, context),
  };
  for (const [key, message] of legacyWarnings(flat.legacy)) context.report.warning([key], message, "key");
  const lifted = liftGeneral(flat.general, context, env.userAgent);

  const sections = readSections(root, context);
  const acme = readOptional(BLOCKS.acme, "acme", root, context);
  const update = readOptional(BLOCKS.update, "update", root, context);
  checkProxyOf("acme", acme, sections.outbounds, context);
  checkProxyOf("update", update, sections.outbounds, context);
  const acmeScope: AcmeScope = root["acme"] === undefined ? null : (acme ?? "faulty");
  const listenerItems = context.list(root["listeners"], ["listeners"]);
  const scope = { outbounds: sections.outbounds, subRules: subRuleNames(root, context), acme: acmeScope };
  const { types, tunListeners: listedTuns, listeners: listed } = readListeners(context, listenerItems, scope);
  const ports = portListeners(lifted.general, env.registries, (key, message) =>
    context.report.warning([key], message),
  );
  const ruleProviders = readRuleProviders(context, root["rule-providers"]);
  const { rules, subRules } = readRules(root, context, new RuleReader(context, scope, ruleProviders.names));

  const blocks = readBlocks(root, context, ruleProviders.names, acmeScope);
  const { dns, tun, svc } = blocks;
  const tunListeners = listedTuns.map((listener) => {
    const path = ["listeners", listener.index];
    const known = withKnownSets(context, listener, ruleProviders.names, path);
    checkTun(context, known, ruleProviders.names, path, `listener ${listener.index}`);
    return known;
  });
  if (svc !== null) {
    checkManagedListeners(context, svc.managedListeners, types);
    checkBackup(context, svc);
  }
  const controller = { ...flat.controller, saysEveryOrigin: saysEveryOrigin(root) };
  checkController(context, controller, blocks.tls);
  checkDnsListeners(context, dns, blocks.tls);
  checkTimeDialer(context, blocks.ntp, sections.outbounds);
  const sources = { proxyProviders: sections.proxyProviders, ruleProviders: ruleProviders.configs };
  warnOfProviderNames(context, "proxy-providers", sources.proxyProviders, sections.outbounds);
  warnOfProviderNames(context, "rule-providers", sources.ruleProviders, sections.outbounds);
  warnOfInertKeys({ ...blocks, ...sources, general: flat.general }, context);
  const trafficControl = readTrafficControl(root["traffic-control"], context);
  checkPortal(context, trafficControl?.enabled === true ? trafficControl.portal.listen : null, {
    "external-controller": flat.controller.externalController,
    "external-controller-tls": flat.controller.externalControllerTls,
  });
  const named = { svc, trafficControl, controller: flat.controller, ...sources };
  const { fileUses, files, report } = context;
  const faults =
    env.guard === undefined
      ? []
      : fileFaults(named, [...fileUses, ...folderUse(context, acme)], files, env.guard);
  for (const { path, message } of faults) report.error(path, message);
  return {
    ...lifted,
    controller,
    geodata: { ...flat.geodata, geodataMode: flat.geodata.geodataMode ?? env.geodataMode ?? false },
    legacy: flat.legacy,
    listeners: [...ports, ...listed],
    tunListeners,
    tunnels: readTunnels(context, context.list(root["tunnels"], ["tunnels"]), sections.outbounds),
    proxies: sections.proxies,
    groups: sections.groups,
    ...sources,
    rules,
    subRules,
    hosts: readHosts(root["hosts"], context),
    ...blocks,
    ...maskIpv6(lifted.general.ipv6, { dns, tun, sniffing: blocks.sniffer.enable }),
    trafficControl,
    acme,
    update,
    fileUses,
  };
}

/** The sections that do not depend on others. */
function readBlocks(root: YamlMap, context: Context, ruleSets: RuleSetNames, acme: AcmeScope) {
  const tun = withKnownSets(context, readBlock("tun", root, context), ruleSets);
  checkTun(context, tun, ruleSets);
  return {
    dns: buildDns(readBlock("dns", root, context), context, ruleSets),
    tun,
    sniffer: buildSniffer(readBlock("sniffer", root, context), context, ruleSets),
    svc: readOptional(BLOCKS.svc, "svc", root, context),
    tls: readBlock(
      "tls",
      { tls: withAcmeFile(context, root["tls"], acme, { path: ["tls"], prefix: "tls." }) },
      context,
    ),
    profile: readBlock("profile", root, context),
    ntp: readBlock("ntp", root, context),
    experimental: readBlock("experimental", root, context),
  };
}

/** Everything that rules and listeners may send traffic to. */
function readSections(root: YamlMap, context: Context) {
  const items = context.list(root["proxies"], ["proxies"]);
  const reader = new ProxyReader(context);
  const { proxies, names } = reader.readAll(items, ["proxies"], "proxy", new Set([...BUILT_INS, GLOBAL]));
  const listed = new ProxyReader(context, { tolerant: true });
  const providers = readProxyProviders(context, root["proxy-providers"], listed);
  const groupItems = context.list(root["proxy-groups"], ["proxy-groups"]);
  const { groups, names: groupNames } = readGroups(context, groupItems, {
    proxies: names,
    providers: providers.names,
  });
  const outbounds = new Set([...BUILT_INS, GLOBAL, ...names, ...groupNames]);
  const membersOf = new Map(groups.map(({ name, members }) => [name, members]));
  const placed = proxies.map(({ proxy, index }) => ({ proxy, path: ["proxies", index] as Path }));
  const faults = dialerProxyFaults(context, placed, membersOf, outbounds);
  const usable = proxies.map(({ proxy }) => ({
    ...proxy,
    inert: proxy.inert ?? faults.get(proxy.name) ?? null,
  }));
  return { proxies: usable, groups, proxyProviders: providers.configs, outbounds };
}

function subRuleNames(root: YamlMap, context: Context): ReadonlySet<string> {
  return new Set(context.entries(root["sub-rules"], ["sub-rules"]).map(([name]) => name));
}

function readRules(root: YamlMap, context: Context, reader: RuleReader) {
  const subRules = new Map<string, readonly RuleConfig[]>();
  if (isMapValue(root["sub-rules"]))
    for (const [name, value] of Object.entries(root["sub-rules"])) {
      const path: Path = ["sub-rules", name];
      subRules.set(name, reader.readAll(context.list(value, path), path, `sub-rules[${name}]`));
    }
  reportSubRuleCircles(context, subRules);
  const rules = reader.readAll(context.list(root["rules"], ["rules"]), ["rules"], "rules");
  return { rules, subRules };
}

/** A set of top-level keys. When some are wrong the others are checked against the defaults of these. */
function readFlat<S extends z.ZodType>(schema: S, root: YamlMap, context: Context): z.output<S> {
  const read = context.readStrict(schema, root, [], true);
  return read ?? defaultsOf(schema);
}

type OptionalBlock = "svc" | "acme" | "update";

/** Null: it is absent, or its errors are reported. */
function readOptional<S extends z.ZodType>(
  schema: S,
  key: OptionalBlock,
  root: YamlMap,
  context: Context,
): z.output<S> | null {
  const value = root[key];
  return value === undefined ? null : context.readStrict(schema, value, [key]);
}

function readBlock<K extends Exclude<keyof typeof BLOCKS, OptionalBlock>>(
  key: K,
  root: YamlMap,
  context: Context,
): z.output<(typeof BLOCKS)[K]> {
  const schema = BLOCKS[key];
  const value = root[key];
  const read = value === undefined ? null : context.readStrict(schema, value, [key]);
  return (read ?? defaultsOf(schema)) as z.output<(typeof BLOCKS)[K]>;
}

function defaultsOf<S extends z.ZodType>(schema: S): z.output<S> {
  return parseSafely(schema, {}).data as z.output<S>;
}

/** Helper keys hold anchors for other places; only one that does not is a likely mistake. */
function warnOfUnknownKeys(root: YamlMap, yaml: YamlFile, { report }: Context): void {
  const known = new Set(Object.keys(TOP_LEVEL));
  for (const key in root) {
    if (known.has(key) || yaml.holdsAnchor(key)) continue;
    report.warning([key], `unknown key ${JSON.stringify(key)}${report.suggest(key, known)}`, "key");
  }
}

/** Maps whose keys are the user's own: one without a value is no default but an entry that is not there. */
const MAPS_OF_NAMES: readonly Path[] = [
  ["hosts"],
  ["sub-rules"],
  ["proxy-providers"],
  ["rule-providers"],
  ["dns", "nameserver-policy"],
  ["dns", "proxy-server-nameserver-policy"],
];

function warnOfEmptyEntries(yaml: YamlFile, { report }: Context): void {
  for (const path of MAPS_OF_NAMES)
    for (const key of yaml.emptyKeys(path))
      report.warning([...path, key], `${JSON.stringify(key)} has no value and is left out`, "key");
}
