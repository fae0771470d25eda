/** Addresses of devices (rtnetlink(7), linux/if_addr.h). */
import { attribute, attributesBehind, LITTLE_ENDIAN, uint32At, type NetlinkMessage } from "./message.ts";
import { NLM_F_CREATE, NLM_F_REPLACE, attribute32 } from "./message.ts";
import { AF_INET, AF_INET6 } from "#platform/linux/sockaddr.ts";
import type { NetlinkSocket } from "./socket.ts";
import { byteAt } from "#lib/at.ts";

export const RTM_NEWADDR = 20;
const RTM_DELADDR = 21;
const RTM_GETADDR = 22;
const HEADER_BYTES = 8;
const IFA_ADDRESS = 1;
const IFA_LOCAL = 2;
const IFA_FLAGS = 8;
/** The address can be used at once. */
const IFA_F_NODAD = 2;
const RT_SCOPE_UNIVERSE = 0;

export interface LinkAddress {
  /** Index of the device. */
  readonly link: number;
  /** 4 or 16 bytes, host bits kept. */
  readonly address: Uint8Array;
  readonly bits: number;
  /** 0: the world, 200: the site, 253: the link, 254: this machine. */
  readonly scope: number;
}

// ifaddrmsg: FAMILY(1) PREFIXLEN(1) FLAGS(1) SCOPE(1) INDEX(4)
function encode({ link, address, bits, scope }: LinkAddress, flags: number): Uint8Array {
  const header = new Uint8Array(HEADER_BYTES);
  header[0] = address.length === 4 ? AF_INET : AF_INET6;
  header[1] = bits;
  header[3] = scope;
  new DataView(header.buffer).setUint32(4, link, LITTLE_ENDIAN);
  const parts = [header, attribute(IFA_LOCAL, address), attribute(IFA_ADDRESS, address)];
  if (flags !== 0) parts.push(attribute32(IFA_FLAGS, flags));
  return Buffer.concat(parts);
}

/** Of one family, or of both. Payloads are copied. */
export function listAddresses(socket: NetlinkSocket, family: 4 | 6 | null): readonly LinkAddress[] {
  const found: LinkAddress[] = [];
  const header = new Uint8Array(HEADER_BYTES);
  header[0] = family === null ? 0 : family === 4 ? AF_INET : AF_INET6;
  socket.dump("list addresses", RTM_GETADDR, header, (message) => {
    const address = message.type === RTM_NEWADDR ? decodeAddress(message) : null;
    if (address !== null) found.push(address);
  });
  return found;
}

/** Repeating it is harmless. */
export function addAddress(socket: NetlinkSocket, link: number, address: Uint8Array, bits: number): void {
  const flags = address.length === 16 ? IFA_F_NODAD : 0;
  const payload = encode({ link, address, bits, scope: RT_SCOPE_UNIVERSE }, flags);
  socket.request(`add an address to device ${link}`, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, payload);
}

/** Throws `SystemError`: EADDRNOTAVAIL where the device has no such address. */
export function deleteAddress(socket: NetlinkSocket, link: number, address: Uint8Array, bits: number): void {
  const payload = encode({ link, address, bits, scope: RT_SCOPE_UNIVERSE }, 0);
  socket.request(`take an address from device ${link}`, RTM_DELADDR, 0, payload);
}

/** Null: of another family. Throws `ProtocolError`. */
export function decodeAddress({ payload }: NetlinkMessage): LinkAddress | null {
  const attributes = attributesBehind(payload, HEADER_BYTES, "an address");
  const family = byteAt(payload, 0);
  // On a link with two ends IFA_ADDRESS is the far one.
  const address = attributes.get(IFA_LOCAL) ?? attributes.get(IFA_ADDRESS);
  const length = family === AF_INET ? 4 : family === AF_INET6 ? 16 : 0;
  const bits = byteAt(payload, 1);
  if (length === 0 || address?.length !== length || bits > length * 8) return null;
  return { link: uint32At(payload, 4), address: Uint8Array.from(address), bits, scope: byteAt(payload, 3) };
}
