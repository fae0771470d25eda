/** Tables of nftables as wholes (linux/netfilter/nf_tables.h): for what is no reason to load a library. */
import { SystemError } from "#platform/linux/libc.ts";
import { attributeText, encodeMessage, NLM_F_ACK, NLM_F_REQUEST } from "./message.ts";
import type { NetlinkSocket } from "./socket.ts";

const NFNL_SUBSYS_NFTABLES = 10;
const NFT_MSG_GETTABLE = 1;
const NFT_MSG_DELTABLE = 2;
const NFNL_MSG_BATCH_BEGIN = 0x10;
const NFNL_MSG_BATCH_END = 0x11;
const NFTA_TABLE_NAME = 1;
const NFPROTO_INET = 1;

const typeOf = (command: number): number => (NFNL_SUBSYS_NFTABLES << 8) | command;

// nfgenmsg: FAMILY(1) VERSION(1) RES_ID(2, big endian)
const INET = Uint8Array.of(NFPROTO_INET, 0, 0, 0);
const BATCH = Uint8Array.of(0, 0, 0, NFNL_SUBSYS_NFTABLES);

/** Of the family inet. `socket` is one of NETFILTER. Throws `SystemError`: EPERM without CAP_NET_ADMIN. */
export function hasTableNamed(socket: NetlinkSocket, name: string): boolean {
  const payload = Buffer.concat([INET, attributeText(NFTA_TABLE_NAME, name)]);
  try {
    socket.request(`look for the table ${name}`, typeOf(NFT_MSG_GETTABLE), 0, payload);
    return true;
  } catch (error) {
    if (error instanceof SystemError && error.code === "ENOENT") return false;
    throw error;
  }
}

/** With all that is in it. Throws `SystemError`. */
export function deleteTableNamed(socket: NetlinkSocket, name: string): void {
  const payload = Buffer.concat([INET, attributeText(NFTA_TABLE_NAME, name)]);
  socket.requestAs(`delete the table ${name}`, (sequence) => {
    const message = (type: number, flags: number, bytes: Uint8Array) =>
      encodeMessage({ type, flags: flags | NLM_F_REQUEST, sequence, payload: bytes });
    return Buffer.concat([
      message(NFNL_MSG_BATCH_BEGIN, 0, BATCH),
      message(typeOf(NFT_MSG_DELTABLE), NLM_F_ACK, payload),
      message(NFNL_MSG_BATCH_END, 0, BATCH),
    ]);
  });
}
