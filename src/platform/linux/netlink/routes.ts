/** Routes (rtnetlink(7), linux/rtnetlink.h). */
import { AF_INET, AF_INET6 } from "#platform/linux/sockaddr.ts";
import {
  attribute,
  attribute32,
  attributesBehind,
  NLM_F_CREATE,
  NLM_F_REPLACE,
  uint32At,
  uint32Of,
  type NetlinkMessage,
} from "./message.ts";
import { SystemError } from "#platform/linux/libc.ts";
import type { NetlinkSocket } from "./socket.ts";
import { byteAt } from "#lib/at.ts";

export const RTM_NEWROUTE = 24;
export const RTM_DELROUTE = 25;
const RTM_GETROUTE = 26;
const HEADER_BYTES = 12;
const RTA_DST = 1;
const RTA_OIF = 4;
const RTA_PRIORITY = 6;
const RTA_MULTIPATH = 9;
const RTA_TABLE = 15;
const RTN_UNICAST = 1;
const RTN_UNREACHABLE = 7;
const RTPROT_STATIC = 4;
const RT_SCOPE_UNIVERSE = 0;
const RT_SCOPE_LINK = 253;
/** Cached entries of IPv6 for single destinations, made by the kernel itself. */
const RTM_F_CLONED = 0x200;

export const MAIN_TABLE = 254;
const LAST_METRIC = 0xffff_fffe;

export interface Route {
  readonly family: 4 | 6;
  /** 4 or 16 bytes with the host bits cleared; empty bytes and 0 bits: everything. */
  readonly destination: { readonly bytes: Uint8Array; readonly bits: number };
  readonly table: number;
  /** Index of the device; 0: none (unreachable and the like). Of several ways the first. */
  readonly link: number;
  readonly metric: number;
  /** False: local, unreachable, broadcast … */
  readonly unicast: boolean;
}

type Destination = Route["destination"];

// rtmsg: FAMILY(1) DST_LEN(1) SRC_LEN(1) TOS(1) TABLE(1) PROTOCOL(1) SCOPE(1) TYPE(1) FLAGS(4)
function header(family: 4 | 6, bits: number, table: number): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES);
  bytes[0] = family === 4 ? AF_INET : AF_INET6;
  bytes[1] = bits;
  bytes[4] = table < 256 ? table : 0; // the attribute has the whole number
  return bytes;
}

/** Calls `visit` for the routes of one table, also where the kernel cannot look for one table alone. */
export function eachRoute(
  socket: NetlinkSocket,
  family: 4 | 6,
  table: number,
  visit: (route: Route) => void,
): void {
  const payload = Buffer.concat([header(family, 0, table), attribute32(RTA_TABLE, table)]);
  try {
    socket.dump(`list routes of table ${table}`, RTM_GETROUTE, payload, (message) => {
      const route = message.type === RTM_NEWROUTE ? decodeRoute(message) : null;
      if (route !== null && route.family === family && route.table === table) visit(route);
    });
  } catch (error) {
    if (!(error instanceof SystemError && error.code === "ENOENT")) throw error; // no such table: no routes
  }
}

/** A route through a device; it takes the place of one to the same destination. */
export function addRoute(
  socket: NetlinkSocket,
  family: 4 | 6,
  table: number,
  destination: Destination,
  link: number,
): void {
  change(socket, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, { family, table, destination, link });
}

/** One that counts only where no other route of the table to this destination does. */
export function addLastRoute(
  socket: NetlinkSocket,
  family: 4 | 6,
  table: number,
  destination: Destination,
  link: number,
): void {
  const wanted = { family, table, destination, link, metric: LAST_METRIC };
  change(socket, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, wanted);
}

/** What no other route of the table takes is refused. */
export function addUnreachable(socket: NetlinkSocket, family: 4 | 6, table: number): void {
  const head = header(family, 0, table);
  head[5] = RTPROT_STATIC;
  head[7] = RTN_UNREACHABLE;
  const parts = [head, attribute32(RTA_TABLE, table), attribute32(RTA_PRIORITY, LAST_METRIC)];
  const flags = NLM_F_CREATE | NLM_F_REPLACE;
  socket.request(`add the last route of table ${table}`, RTM_NEWROUTE, flags, Buffer.concat(parts));
}

/** Throws `SystemError`: ESRCH where there is no such route. */
export function deleteRoute(
  socket: NetlinkSocket,
  family: 4 | 6,
  table: number,
  destination: Destination,
  link: number,
): void {
  change(socket, RTM_DELROUTE, 0, { family, table, destination, link });
}

interface Wanted extends Pick<Route, "family" | "table" | "destination" | "link"> {
  readonly metric?: number;
}

function change(
  socket: NetlinkSocket,
  type: number,
  flags: number,
  { family, table, destination: { bytes, bits }, link, metric }: Wanted,
): void {
  const head = header(family, bits, table);
  if (type === RTM_NEWROUTE) {
    head[5] = RTPROT_STATIC;
    head[6] = family === 4 ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
    head[7] = RTN_UNICAST;
  } else head[6] = 255; // RT_SCOPE_NOWHERE: any
  const parts = [head, attribute32(RTA_TABLE, table)];
  if (bits > 0) parts.push(attribute(RTA_DST, bytes));
  if (link !== 0) parts.push(attribute32(RTA_OIF, link));
  if (metric !== undefined) parts.push(attribute32(RTA_PRIORITY, metric));
  const verb = type === RTM_NEWROUTE ? "add" : "delete";
  socket.request(`${verb} a route of table ${table}`, type, flags, Buffer.concat(parts));
}

/** Null: of another family, or a cached entry. Throws `ProtocolError`. */
export function decodeRoute({ payload }: NetlinkMessage): Route | null {
  const attributes = attributesBehind(payload, HEADER_BYTES, "a route");
  const family = payload[0] === AF_INET ? 4 : payload[0] === AF_INET6 ? 6 : null;
  if (family === null || (uint32At(payload, 8) & RTM_F_CLONED) !== 0) return null;
  const bits = byteAt(payload, 1);
  const bytes = attributes.get(RTA_DST) ?? new Uint8Array();
  const length = family === 4 ? 4 : 16;
  if (bits > length * 8 || (bytes.length !== length && bits > 0)) return null;
  return {
    family,
    destination: { bytes: Uint8Array.from(bytes), bits },
    table: uint32Of(attributes.get(RTA_TABLE)) ?? byteAt(payload, 4),
    link: uint32Of(attributes.get(RTA_OIF)) ?? firstHop(attributes.get(RTA_MULTIPATH)),
    metric: uint32Of(attributes.get(RTA_PRIORITY)) ?? 0,
    unicast: payload[7] === RTN_UNICAST,
  };
}

// rtnexthop: LEN(2) FLAGS(1) HOPS(1) IFINDEX(4)
function firstHop(hops: Uint8Array | undefined): number {
  return hops === undefined || hops.length < 8 ? 0 : uint32At(hops, 4);
}
