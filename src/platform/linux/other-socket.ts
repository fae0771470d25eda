import { openDiag } from "./process-diag.ts";
import type { AddressBytes } from "./process-socket.ts";
import type { Endpoint } from "#core/session.ts";

/**
 * Does another TCP connection of this machine have the same two ends as the socket of this inode? That is possible when
 * one of them is bound to a device (SO_BINDTODEVICE); only one that is bound to none is seen. False where the system
 * cannot say.
 */
export type OtherSocket = (local: Endpoint, peer: Endpoint, inode: number) => boolean;

/** What a lookup may find that is no connection (include/net/tcp_states.h). */
const TIME_WAIT = 6;
const LISTEN = 10;
/** The inode of what its program has closed and the kernel has not: it begins no connection. */
const CLOSED = 0;

/** Null where the kernel cannot be asked. */
export function openOtherSocket(addressBytes: AddressBytes): OtherSocket | null {
  const find = openDiag(addressBytes);
  if (find === null) return null;
  return (local, peer, inode) => {
    if (inode < 0) return false;
    const found = find("tcp", local, peer);
    if (found === null || found.state === LISTEN || found.state === TIME_WAIT) return false;
    return found.inode !== inode && found.inode !== CLOSED;
  };
}
