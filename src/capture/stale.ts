/** What a capture that was killed left among ip rules and routes, wherever it stood. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import {
  deleteRoute,
  deleteRules,
  eachRoute,
  hasTable,
  MAIN_TABLE,
  openNetlink,
  OUR_PROTOCOL,
  type NetlinkSocket,
  type Route,
  type ShownRule,
} from "#platform/netlink.ts";
import { NEXT_TABLE, TABLE } from "./nft/names.ts";
import { FAMILIES, refusesFakes, shownRules, tolerating } from "./rule-block.ts";

/**
 * Takes away rules of ours that lead into tables without any device, and what else is in these. A table with a device is a
 * capture in force, of another program, or what keeps its traffic in: then nothing is touched. `keepsFakes`: but for the rules
 * that let no fake address leave. Never throws: without the right to there is nothing of ours.
 */
export function clearStale(log: Log, { keepsFakes }: { readonly keepsFakes: boolean }): void {
  try {
    using socket = openNetlink("auto-route");
    const ours = shownRules(socket).filter(({ protocol }) => protocol === OUR_PROTOCOL);
    const kept = keepsFakes ? fakeBlocks(ours) : new Set<string>();
    const rules = ours.filter((rule) => !kept.has(placeName(rule)));
    if (rules.length > 0) clear(socket, rules);
  } catch (error) {
    log.debug(`auto-route: rules that a program before left: ${messageOf(error)}`);
  }
}

const placeName = ({ family, priority }: Pick<ShownRule, "family" | "priority">): string =>
  `${family} ${priority}`;

/** Where rules stand that let no fake address leave, and what these jump by. */
function fakeBlocks(rules: readonly ShownRule[]): ReadonlySet<string> {
  const kept = new Set<string>();
  for (const { family, priority } of rules.filter(refusesFakes))
    for (const near of [-1, 0, 1]) kept.add(placeName({ family, priority: priority + near }));
  return kept;
}

function clear(socket: NetlinkSocket, rules: readonly ShownRule[]): void {
  const tables = new Set(rules.flatMap(({ table }) => (table === 0 || table === MAIN_TABLE ? [] : [table])));
  const routes: Route[] = [];
  for (const family of FAMILIES)
    for (const table of tables)
      tolerating(() => eachRoute(socket, family, table, (route) => routes.push(route)));
  if (routes.some(({ unicast, link }) => unicast && link !== 0)) return;
  for (const { family, priority } of rules)
    tolerating(() => deleteRules(socket, family, priority, OUR_PROTOCOL));
  for (const { family, table, destination, link } of routes)
    tolerating(() => deleteRoute(socket, family, table, destination, link));
}

/**
 * Is a capture by nftables in force, of any program? The table goes with the program that made it, but for old kernels. Throws
 * `ConfigError` or `SystemError`: EPERM without CAP_NET_ADMIN.
 */
export function isTableThere(): boolean {
  return [TABLE, NEXT_TABLE].some((table) => hasTable("auto-redirect", table.replace(/^inet /, "")));
}
