/** Network devices (rtnetlink(7), linux/if_link.h). */
import {
  attribute32,
  attribute8,
  attributeNested,
  attributesBehind,
  LITTLE_ENDIAN,
  textOf,
  uint32At,
  uint32Of,
  type NetlinkMessage,
} from "./message.ts";
import type { NetlinkSocket } from "./socket.ts";
import { byteAt } from "#lib/at.ts";

export const RTM_NEWLINK = 16;
const RTM_GETLINK = 18;
const RTM_SETLINK = 19;
const HEADER_BYTES = 16;
const IFF_UP = 1;
const IFLA_IFNAME = 3;
const IFLA_MTU = 4;
const IFLA_MASTER = 10;
const IFLA_TXQLEN = 13;
const IFLA_AF_SPEC = 26;
const IFLA_INET6_ADDR_GEN_MODE = 8;
const AF_INET6 = 10;
const GENERATE_NONE = 1;
/** ARPHRD_ETHER; a TUN has none of its own (0xfffe). */
const ETHERNET = 1;

export interface Link {
  readonly index: number;
  readonly name: string;
  readonly up: boolean;
  readonly mtuBytes: number;
  /** Has it MAC addresses? */
  readonly ethernet: boolean;
  /** Index of the bridge or bond that it is a port of; 0: of none. */
  readonly master: number;
}

export interface LinkChange {
  readonly up?: boolean;
  readonly mtuBytes?: number;
  /** Packets that wait at most. */
  readonly transmitQueue?: number;
  /** No link-local address and so no solicitations out of a new TUN. Refused where IPv6 is off. */
  readonly generateAddresses?: false;
}

// ifinfomsg: FAMILY(1) PAD(1) TYPE(2) INDEX(4) FLAGS(4) CHANGE(4)
function header(index: number, up: boolean | undefined): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setInt32(4, index, LITTLE_ENDIAN);
  view.setUint32(8, up === true ? IFF_UP : 0, LITTLE_ENDIAN);
  view.setUint32(12, up === undefined ? 0 : IFF_UP, LITTLE_ENDIAN);
  return bytes;
}

export function listLinks(socket: NetlinkSocket): readonly Link[] {
  const links: Link[] = [];
  socket.dump("list devices", RTM_GETLINK, header(0, undefined), (message) => {
    if (message.type === RTM_NEWLINK) links.push(decodeLink(message));
  });
  return links;
}

/** Null where there is no such device. */
export function findLink(socket: NetlinkSocket, name: string): Link | null {
  return listLinks(socket).find((link) => link.name === name) ?? null;
}

/** Throws `SystemError`: ENODEV where the device has gone. */
export function setLink(socket: NetlinkSocket, index: number, change: LinkChange): void {
  const parts = [header(index, change.up)];
  if (change.mtuBytes !== undefined) parts.push(attribute32(IFLA_MTU, change.mtuBytes));
  if (change.transmitQueue !== undefined) parts.push(attribute32(IFLA_TXQLEN, change.transmitQueue));
  if (change.generateAddresses === false) {
    const mode = attribute8(IFLA_INET6_ADDR_GEN_MODE, GENERATE_NONE);
    parts.push(attributeNested(IFLA_AF_SPEC, [attributeNested(AF_INET6, [mode])]));
  }
  socket.request(`change device ${index}`, RTM_SETLINK, 0, Buffer.concat(parts));
}

/** Throws `ProtocolError`. */
export function decodeLink({ payload }: NetlinkMessage): Link {
  const attributes = attributesBehind(payload, HEADER_BYTES, "a device");
  const kind = byteAt(payload, LITTLE_ENDIAN ? 2 : 3) | (byteAt(payload, LITTLE_ENDIAN ? 3 : 2) << 8);
  return {
    index: uint32At(payload, 4),
    name: textOf(attributes.get(IFLA_IFNAME)),
    up: (uint32At(payload, 8) & IFF_UP) !== 0,
    mtuBytes: uint32Of(attributes.get(IFLA_MTU)) ?? 0,
    ethernet: kind === ETHERNET,
    master: uint32Of(attributes.get(IFLA_MASTER)) ?? 0,
  };
}
