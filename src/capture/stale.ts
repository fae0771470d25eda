/** What a capture that was killed left among ip rules and routes, wherever it stood. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import {
  deleteRoute,
  deleteRules,
  eachRoute,
  listRules,
  MAIN_TABLE,
  openNetlink,
  OUR_PROTOCOL,
  type NetlinkSocket,
  type Route,
  type ShownRule,
} from "#platform/netlink.ts";
import { tolerating } from "./routing.ts";

const FAMILIES = [4, 6] as const;

/**
 * Takes away rules of ours that lead into tables without any device, and what else is in these. A table with a device is a
 * capture in force, of another program: then nothing is touched. Never throws: without the right to there is nothing of ours.
 */
export function clearStale(log: Log): void {
  try {
    using socket = openNetlink("auto-route");
    const rules: ShownRule[] = [];
    for (const family of FAMILIES)
      tolerating(() =>
        rules.push(...listRules(socket, family).filter(({ protocol }) => protocol === OUR_PROTOCOL)),
      );
    if (rules.length > 0) clear(socket, rules);
  } catch (error) {
    log.debug(`auto-route: rules that a program before left: ${messageOf(error)}`);
  }
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
