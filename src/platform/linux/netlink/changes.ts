/** Which messages of the multicast groups are of interest (rtnetlink(7), linux/netfilter/nf_tables.h). */
import type { NetlinkMessage } from "./message.ts";
import { decodeRoute, RTM_DELROUTE, RTM_NEWROUTE } from "./routes.ts";

/** RTNLGRP_LINK, the groups of addresses, routes and rules of both families. */
export const ROUTE_GROUPS = {
  link: [1],
  address: [5, 9],
  route: [7, 11],
  rule: [8, 19],
} as const;
/** NFNLGRP_NFTABLES */
export const NFTABLES_GROUP = 7;

const NFNL_SUBSYS_NFTABLES = 10;
/** NEWTABLE, DELTABLE, NEWCHAIN, DELCHAIN, NEWRULE, DELRULE: elements of sets come and go all the time. */
const TABLE_CHANGES: ReadonlySet<number> = new Set([0, 2, 3, 5, 6, 8]);

/**
 * Devices, addresses, rules, default routes and the routes of `tables`; all other routes are ignored, because a full
 * Internet table changes all the time. Throws `ProtocolError`.
 */
export function isRouteChange(message: NetlinkMessage, tables: ReadonlySet<number>): boolean {
  if (message.type !== RTM_NEWROUTE && message.type !== RTM_DELROUTE) return true;
  const route = decodeRoute(message);
  return route !== null && (route.destination.bits === 0 || tables.has(route.table));
}

/** A table, a chain or a rule came or went. */
export function isTableChange({ type }: NetlinkMessage): boolean {
  return type >> 8 === NFNL_SUBSYS_NFTABLES && TABLE_CHANGES.has(type & 0xff);
}
