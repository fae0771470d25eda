/** The door to devices, addresses, routes and rules. Where a system cannot, the error names the configuration key. */
import { ConfigError } from "#core/errors.ts";
import { openLibc } from "./linux/libc.ts";
import { Monitor, type MonitorOptions } from "./linux/netlink/monitor.ts";
import { NetlinkSocket } from "./linux/netlink/socket.ts";
import { openPoller } from "./linux/uv-poll.ts";

export { SystemError } from "./linux/libc.ts";
export { addAddress, deleteAddress, listAddresses, type LinkAddress } from "./linux/netlink/addresses.ts";
export { findLink, listLinks, setLink, type Link, type LinkChange } from "./linux/netlink/links.ts";
export type { NetlinkSocket } from "./linux/netlink/socket.ts";
export { addRoute, deleteRoute, eachRoute, MAIN_TABLE, type Route } from "./linux/netlink/routes.ts";
export { addRule, deleteRules, listRules, type IpRule, type ShownRule } from "./linux/netlink/rules.ts";

/** A socket for requests; the caller owns it. `key` is the configuration key that needs it. Throws `ConfigError`. */
export function openNetlink(key: string, system: string = process.platform): NetlinkSocket {
  if (system !== "linux") throw new ConfigError(`${key}: only Linux can do this, this system is ${system}`);
  const libc = openLibc();
  if (libc === null)
    throw new ConfigError(`${key}: needs a runtime with node:ffi, ${process.version} has none`);
  return new NetlinkSocket(process.getBuiltinModule("node:ffi"), libc);
}

/** Calls `on` soon after a change, at most once a second, until it is disposed. Throws `ConfigError`. */
export function watchNetwork(key: string, options: MonitorOptions, on: () => void): Disposable {
  const socket = openNetlink(key);
  const poller = openPoller();
  try {
    if (poller === null) throw new ConfigError(`${key}: needs a runtime with node:ffi`);
    return new Monitor(socket, poller, options, on);
  } catch (error) {
    socket[Symbol.dispose]();
    throw error;
  }
}
