/** `proxy-groups`. */
import { suggestion } from "#lib/nearest-word.ts";
import * as z from "zod";
import { findCircles } from "./circles.ts";
import { DEFAULT_GROUP_SETTINGS, type GroupConfig, type GroupSettings } from "./config.ts";
import type { Context } from "./context.ts";
import { filterFault, groupFields } from "./group-fields.ts";
import { isItemMap, joined, peek, readBoth } from "./items.ts";
import { BUILT_INS, GLOBAL, GROUP_TYPES } from "./known-types.ts";
import { usableTestUrl } from "./providers.ts";
import type { Path } from "./report.ts";

/** What groups may name. */
export interface GroupScope {
  /** Names of the nodes, in file order. */
  readonly proxies: ReadonlySet<string>;
  readonly providers: ReadonlySet<string>;
}

export interface Groups {
  readonly groups: readonly GroupConfig[];
  /** Of every group that has a name, also of those that could not be read. */
  readonly names: ReadonlySet<string>;
}

/** Plain defaults of the ecosystem for groups that test. */
const TEST_INTERVAL_SECONDS = 300;

export function readGroups(context: Context, items: readonly unknown[], scope: GroupScope): Groups {
  const { report } = context;
  const names = new Set<string>();
  for (const [at, item] of items.entries()) {
    const name = peek(item, "name", "case");
    if (name === null || name === "") continue;
    const clash = names.has(name) || scope.proxies.has(name) || BUILT_INS.includes(name);
    if (clash)
      report.error(
        ["proxy-groups", at, "name"],
        `ProxyGroup ${name}: duplicate group name; proxies, groups and built-ins share one space of names`,
      );
    names.add(name);
  }
  const members = new Set([...BUILT_INS, ...scope.proxies, ...names]);
  const groups: GroupConfig[] = [];
  const paths = new Map<string, Path>();
  for (const [at, item] of items.entries()) {
    const group = readGroup(context, item, at, scope, members);
    if (group === null) continue;
    groups.push(group);
    paths.set(group.name, ["proxy-groups", at]);
  }
  reportLoops(context, groups, paths);
  return { groups, names };
}

function readGroup(
  context: Context,
  item: unknown,
  at: number,
  scope: GroupScope,
  known: ReadonlySet<string>,
): GroupConfig | null {
  const { report, registries } = context;
  const path: Path = ["proxy-groups", at];
  if (!isItemMap(context, item, path, `proxy group ${at}`)) return null;
  const name = peek(item, "name", "case");
  if (name === null || name === "") {
    report.error(path, `proxy group ${at}: missing name`, "key");
    return null;
  }
  const prefix = `proxy group[${at}]: ${name}`;
  const type = peek(item, "type", "case");
  const kind = registries.groupKinds.find((entry) => entry.type === type);
  if (kind === undefined && type !== null) {
    reportType(context, type, path, prefix);
    return null;
  }
  const own = kind?.schema ?? z.object({});
  const schema = joined(groupFields, own);
  const prepared = context.prepare(schema, item, path, "case", prefix);
  const usable = context.leaveOut(schema, prepared, path, `${prefix}: `);
  const read = readBoth(context, groupFields, own, usable, path, prefix);
  if (read === null || kind === undefined) return null;
  const settings = readSettings(context, read.common, path, prefix, scope);
  for (const [index, member] of read.common.proxies.entries())
    if (!known.has(member))
      report.error(
        [...path, "proxies", index],
        `${prefix}: '${member}' not found${report.suggest(member, known)}`,
      );
  if (!BUILT_INS.includes(settings.emptyFallback) && !scope.proxies.has(settings.emptyFallback))
    report.error(
      [...path, "empty-fallback"],
      `${prefix}: empty-fallback '${settings.emptyFallback}' must be a proxy, not a group or an unknown name`,
    );
  return { name, kind, members: read.common.proxies, options: read.options, settings };
}

function reportType({ report }: Context, type: string, path: Path, prefix: string): void {
  report.error(
    [...path, "type"],
    `${prefix}: unsupported group type: ${type}; expected one of ${GROUP_TYPES.join(", ")}${suggestion(type, GROUP_TYPES)}`,
  );
}

function readSettings(
  context: Context,
  fields: z.output<typeof groupFields>,
  path: Path,
  prefix: string,
  scope: GroupScope,
): GroupSettings {
  const includeProxies = fields["include-all"] || fields["include-all-proxies"];
  const includeProviders = fields["include-all"] || fields["include-all-providers"];
  const use = includeProviders ? [...scope.providers].sort(bytewise) : fields.use;
  if (fields.proxies.length === 0 && use.length === 0 && !includeProxies && !includeProviders)
    context.report.error(path, `${prefix}: 'use' or 'proxies' missing`, "key");
  checkSettings(context, fields, path, prefix, scope);
  const tests = fields.type !== "select" && fields.proxies.length > 0;
  return {
    use,
    included: includeProxies ? [...scope.proxies].sort(bytewise) : [],
    url: usableTestUrl(context, fields.url, [...path, "url"], prefix),
    intervalSeconds: fields.interval ?? (tests ? TEST_INTERVAL_SECONDS : 0),
    lazy: fields.lazy,
    timeoutMs: fields.timeout,
    maxFailedTimes: fields["max-failed-times"],
    expectedStatus: fields["expected-status"],
    disableUdp: fields["disable-udp"],
    filter: fields.filter,
    excludeFilter: fields["exclude-filter"],
    excludeTypes: fields["exclude-type"]
      .toLowerCase()
      .split("|")
      .map((word) => word.trim())
      .filter((word) => word !== ""),
    hidden: fields.hidden,
    icon: fields.icon,
    emptyFallback: fields["empty-fallback"] || DEFAULT_GROUP_SETTINGS.emptyFallback,
    defaultSelected: fields["default-selected"],
  };
}

/** What the fields name, and those that do nothing on a group. */
function checkSettings(
  { report }: Context,
  fields: z.output<typeof groupFields>,
  path: Path,
  prefix: string,
  { providers }: GroupScope,
): void {
  const includeProviders = fields["include-all"] || fields["include-all-providers"];
  for (const [at, provider] of (includeProviders ? [] : fields.use).entries())
    if (!providers.has(provider))
      report.error(
        [...path, "use", at],
        `${prefix}: provider '${provider}' not found${report.suggest(provider, providers)}`,
      );
  if (fields.proxies.length > 0 && providers.has(fields.name))
    report.error([...path, "name"], `${prefix}: a proxy-provider has the same name; rename one of them`);
  for (const key of ["filter", "exclude-filter"] as const) {
    const fault = filterFault(fields[key]);
    if (fault !== null) report.error([...path, key], `${prefix}: '${key}' ${fault}`);
  }
  for (const key of ["interface-name", "routing-mark", "dialer-proxy"] as const)
    if (fields[key] !== null)
      report.warning(
        [...path, key],
        `${prefix}: '${key}' has no effect on a group; set it on the proxies`,
        "key",
      );
}

/** The order of UTF-8 bytes, which differs from that of UTF-16 units beyond the basic plane. */
export function bytewise(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

function reportLoops(
  { report }: Context,
  groups: readonly GroupConfig[],
  paths: ReadonlyMap<string, Path>,
): void {
  const members = new Map(
    groups.map((group) => [group.name, group.members.filter((name) => paths.has(name))]),
  );
  const circles = findCircles(members.keys(), (name) => members.get(name) ?? []);
  if (circles.length === 0) return;
  const looping = circles.map((circle) => [...circle, circle[0]].join(" -> ")).join("; ");
  const first = circles[0]?.[0] ?? GLOBAL;
  report.error(
    [...(paths.get(first) ?? ["proxy-groups"]), "proxies"],
    `loop is detected in ProxyGroup, please check following ProxyGroups: ${looping}`,
  );
}
