/** Devices, addresses, routes and rules. On a system without them the error names the configuration key. */
import type { Log } from "#core/log.ts";
import { libcFor } from "./linux/libc.ts";
import { forgetFlows } from "./linux/netlink/conntrack.ts";
import { Monitor, type MonitorOptions } from "./linux/netlink/monitor.ts";
import type { NetlinkMessage } from "./linux/netlink/message.ts";
import { isRouteChange, isTableChange, NFTABLES_GROUP, ROUTE_GROUPS } from "./linux/netlink/changes.ts";
import { NETLINK_NETFILTER, NETLINK_ROUTE, NetlinkSocket } from "./linux/netlink/socket.ts";
import { deleteTableNamed, hasTableNamed } from "./linux/netlink/tables.ts";
import { Poller } from "./linux/uv-poll.ts";
import { ffiFor } from "./ffi.ts";

export { SystemError } from "./linux/libc.ts";
export { usesDeadLink } from "./linux/dead-links.ts";
export { loosenReversePath } from "./linux/reverse-path.ts";
export { addAddress, deleteAddress, listAddresses, type LinkAddress } from "./linux/netlink/addresses.ts";
export { findLink, listLinks, setLink, type Link, type LinkChange } from "./linux/netlink/links.ts";
export type { NetlinkSocket } from "./linux/netlink/socket.ts";
export {
  addLastRoute,
  addRoute,
  addUnreachable,
  deleteRoute,
  eachRoute,
  MAIN_TABLE,
  type Route,
} from "./linux/netlink/routes.ts";
export {
  addRule,
  deleteRules,
  listRules,
  OUR_PROTOCOL,
  RULE_ACTIONS,
  type IpRule,
  type ShownRule,
} from "./linux/netlink/rules.ts";

/** A socket for requests; the caller owns it. `key` is the configuration key that needs it. Throws `ConfigError`. */
export function openNetlink(key: string, system: string = process.platform): NetlinkSocket {
  return open(key, NETLINK_ROUTE, system);
}

/** Connection tracking forgets every flow with this mark. Throws `ConfigError` or `SystemError`. */
export function forgetMarkedFlows(key: string, mark: number): void {
  using socket = open(key, NETLINK_NETFILTER, process.platform);
  forgetFlows(socket, mark);
}

/** Is there a table of nftables of the family inet with this name? Throws `ConfigError` or `SystemError`. */
export function hasTable(key: string, name: string): boolean {
  using socket = open(key, NETLINK_NETFILTER, process.platform);
  return hasTableNamed(socket, name);
}

/** Throws `ConfigError` or `SystemError`. */
export function deleteTable(key: string, name: string): void {
  using socket = open(key, NETLINK_NETFILTER, process.platform);
  deleteTableNamed(socket, name);
}

export interface NetworkWatch {
  readonly parts: readonly (keyof typeof ROUTE_GROUPS)[];
  /** Routing tables whose routes are reported beside default routes. */
  readonly tables: readonly number[];
  readonly log: Log;
}

/** Calls `on` soon after a change, at most once a second, until it is disposed. Throws `ConfigError`. */
export function watchNetwork(key: string, { parts, tables, log }: NetworkWatch, on: () => void): Disposable {
  const groups = parts.flatMap((part) => ROUTE_GROUPS[part]);
  const wanted = new Set(tables);
  const isRelevant = (message: NetlinkMessage) => isRouteChange(message, wanted);
  return watch(key, NETLINK_ROUTE, { groups, isRelevant, log }, on);
}

/** Reports changes of nftables' tables, chains and rules by any program. Throws `ConfigError`. */
export function watchNftables(key: string, log: Log, on: () => void): Disposable {
  return watch(key, NETLINK_NETFILTER, { groups: [NFTABLES_GROUP], isRelevant: isTableChange, log }, on);
}

function watch(key: string, protocol: number, options: MonitorOptions, on: () => void): Disposable {
  const poller = new Poller(ffiFor(key));
  const socket = open(key, protocol, process.platform);
  try {
    return new Monitor(socket, poller, options, on);
  } catch (error) {
    socket[Symbol.dispose]();
    throw error;
  }
}

function open(key: string, protocol: number, system: string): NetlinkSocket {
  return new NetlinkSocket(ffiFor(key, system), libcFor(key, system), protocol);
}
