/** Flows that connection tracking remembers (linux/netfilter/nfnetlink_conntrack.h). */
import { attribute } from "./message.ts";
import type { NetlinkSocket } from "./socket.ts";

const NFNL_SUBSYS_CTNETLINK = 1;
const IPCTNL_MSG_CT_DELETE = 2;
const CTA_MARK = 8;
const CTA_MARK_MASK = 21;
/** nfgenmsg: FAMILY(1) VERSION(1) RES_ID(2); no family: all. */
const HEADER = new Uint8Array(4);

/** Forgets every flow with this mark, whole: its next packet is a new flow's first. `socket` is one of NETFILTER. */
export function forgetFlows(socket: NetlinkSocket, mark: number): void {
  const type = (NFNL_SUBSYS_CTNETLINK << 8) | IPCTNL_MSG_CT_DELETE;
  const parts = [
    HEADER,
    attribute(CTA_MARK, bigEndian(mark)),
    attribute(CTA_MARK_MASK, bigEndian(0xffff_ffff)),
  ];
  socket.request("forget marked flows", type, 0, Buffer.concat(parts));
}

function bigEndian(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}
