import { DEFAULT_GROUP_SETTINGS, type GroupConfig, type GroupSettings } from "#config/config.ts";
import type { Range } from "#core/ranges.ts";
import type { GroupSettings as LiveSettings, TestPlan } from "#core/group.ts";
import type { Outbound } from "#core/outbound.ts";
import { compilePattern } from "#lib/wildcard-pattern.ts";

/** The ecosystem's test page; answers 204 without a body. */
export const DEFAULT_TEST_URL = "https://www.gstatic.com/generate_204";

/** Where a group's members come from. */
export interface MemberSources {
  /** As listed under `proxies`. */
  readonly listed: readonly Outbound[];
  /** What `include-all-proxies` adds. */
  readonly included: readonly Outbound[];
  /** The nodes of the used providers, now. */
  provided(): readonly Outbound[];
  /** Taken where nothing is left, now. */
  ifNone(): readonly Outbound[];
}

/** Returns the members; the list is computed again only when a provider has new nodes. */
export function memberList(settings: GroupSettings, sources: MemberSources): () => readonly Outbound[] {
  const filters = patternsOf(settings.filter);
  const excludes = patternsOf(settings.excludeFilter);
  const excludedTypes = new Set(settings.excludeTypes);
  const keep = ({ name, type }: Outbound) =>
    !excludes.some((pattern) => pattern.test(name)) && !excludedTypes.has(type.toLowerCase());
  let seen: readonly Outbound[] | null = null;
  let members: readonly Outbound[] = [];
  return () => {
    const provided = sources.provided();
    if (provided !== seen) {
      seen = provided;
      const all = [...sources.listed, ...filtered([...sources.included, ...provided], filters)];
      members = [...new Set(all)].filter(keep);
    }
    return members.length > 0 ? members : sources.ifNone();
  };
}

export function timesListed(names: readonly string[]): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const name of names) times.set(name, (times.get(name) ?? 0) + 1);
  return times;
}

/** In the order of the filters, each node once. */
function filtered(nodes: readonly Outbound[], filters: readonly RegExp[]): readonly Outbound[] {
  if (filters.length === 0) return nodes;
  return filters.flatMap((filter) => nodes.filter(({ name }) => filter.test(name)));
}

/** Several expressions are joined by a backtick. */
function patternsOf(text: string): readonly RegExp[] {
  return text === "" ? [] : text.split("`").map((part) => compilePattern(part));
}

/** The settings that a group works with; `url` of the first used provider where the group has none. */
export function liveSettings(
  { settings = DEFAULT_GROUP_SETTINGS }: GroupConfig,
  providerUrl: string | null,
): LiveSettings {
  const url = settings.url ?? providerUrl ?? DEFAULT_TEST_URL;
  return {
    ...testPlan(url, settings.timeoutMs, settings.expectedStatus),
    intervalSeconds: settings.intervalSeconds,
    lazy: settings.lazy,
    maxFailedTimes: settings.maxFailedTimes,
    disableUdp: settings.disableUdp,
    defaultSelected: settings.defaultSelected || null,
  };
}

/** Without ranges, or where they leave nothing out, every status counts. */
export function testPlan(url: string, timeoutMs: number, expectedStatus: readonly Range[] = []): TestPlan {
  const everyStatus =
    expectedStatus.length === 0 || expectedStatus.some(({ from, to }) => from <= 100 && to >= 599);
  return {
    url,
    timeoutMs,
    expected: everyStatus ? null : expectedStatus.map(({ from, to }) => [from, to] as const),
  };
}
