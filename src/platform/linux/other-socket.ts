import type { OtherSocket } from "#platform/process.ts";
import { openDiag } from "./process-diag.ts";
import type { AddressBytes } from "./process-socket.ts";

/** What a lookup may find that is no connection (include/net/tcp_states.h). */
const TIME_WAIT = 6;
const LISTEN = 10;

/** Null where the kernel cannot be asked. */
export function openOtherSocket(addressBytes: AddressBytes): OtherSocket | null {
  const find = openDiag(addressBytes);
  if (find === null) return null;
  return (local, peer, inode) => {
    if (inode < 0) return false;
    const found = find("tcp", local, peer);
    return found !== null && found.inode !== inode && found.state !== LISTEN && found.state !== TIME_WAIT;
  };
}
