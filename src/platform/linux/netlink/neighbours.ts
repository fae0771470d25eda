/** Which hardware address has which address on the links of this machine (rtnetlink(7), linux/neighbour.h). */
import { AF_INET, AF_INET6 } from "#platform/linux/sockaddr.ts";
import { byteAt } from "#lib/at.ts";
import { attributesBehind, LITTLE_ENDIAN, uint32At, type NetlinkMessage } from "./message.ts";
import type { NetlinkSocket } from "./socket.ts";

export const RTM_NEWNEIGH = 28;
export const RTM_DELNEIGH = 29;
const RTM_GETNEIGH = 30;
/** RTNLGRP_NEIGH */
export const NEIGHBOUR_GROUP = 3;
const HEADER_BYTES = 12;
const NDA_DST = 1;
const NDA_LLADDR = 2;
const MAC_BYTES = 6;
/** NUD_REACHABLE, NUD_STALE, NUD_DELAY, NUD_PROBE, NUD_PERMANENT: the hardware address is known, if perhaps not confirmed of late. */
const KNOWN_STATES = 0x02 | 0x04 | 0x08 | 0x10 | 0x80;
/** Answers for others: says nothing of who has the address. */
const NTF_PROXY = 0x08;

export interface Neighbour {
  /** 4 or 16 bytes. */
  readonly address: Uint8Array;
  /** Index of the device. */
  readonly link: number;
  /** `02:00:5e:00:53:01`; null: the entry is gone, or its hardware address is not known. */
  readonly mac: string | null;
}

// ndmsg: FAMILY(1) PAD(3) IFINDEX(4) STATE(2) FLAGS(1) TYPE(1)
/** Null: of another family, or of a link without hardware addresses of six bytes. Throws `ProtocolError`. */
export function decodeNeighbour({ type, payload }: NetlinkMessage): Neighbour | null {
  if (type !== RTM_NEWNEIGH && type !== RTM_DELNEIGH) return null;
  const attributes = attributesBehind(payload, HEADER_BYTES, "a neighbour");
  const length = payload[0] === AF_INET ? 4 : payload[0] === AF_INET6 ? 16 : 0;
  const address = attributes.get(NDA_DST);
  if (length === 0 || address?.length !== length || (byteAt(payload, 10) & NTF_PROXY) !== 0) return null;
  const state = new DataView(payload.buffer, payload.byteOffset + 8, 2).getUint16(0, LITTLE_ENDIAN);
  const hardware = attributes.get(NDA_LLADDR);
  const isKnown = type === RTM_NEWNEIGH && (state & KNOWN_STATES) !== 0 && hardware?.length === MAC_BYTES;
  return { address: address.slice(), link: uint32At(payload, 4), mac: isKnown ? macText(hardware) : null };
}

function macText(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(":");
}

/** Of both families. */
export function eachNeighbour(socket: NetlinkSocket, visit: (neighbour: Neighbour) => void): void {
  socket.dump("list neighbours", RTM_GETNEIGH, new Uint8Array(HEADER_BYTES), (message) => {
    const neighbour = decodeNeighbour(message);
    if (neighbour !== null) visit(neighbour);
  });
}
