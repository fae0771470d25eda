/** Which local program opened a connection; null on systems that cannot say. */
import { fstatSync } from "node:fs";
import type { Ip } from "#core/session.ts";
import { openOtherSocket, type OtherSocket } from "./linux/other-socket.ts";
import { openLinuxProcesses } from "./linux/process.ts";
import type { ProcessLookup } from "./process-lookup.ts";

/** May a `UID` rule be written on this system? */
export const KNOWS_USER_IDS: boolean = process.platform === "linux" || process.platform === "android";

const NO_LOOKUP: ProcessLookup = { uid: async () => null, process: async () => null };

/** `addressBytes` gives an address as 4 or 16 bytes in network order. */
export function openProcessLookup(
  addressBytes: (ip: Ip) => Uint8Array,
  system: string = process.platform,
): ProcessLookup {
  return system === "linux" ? openLinuxProcesses(addressBytes) : NO_LOOKUP;
}

/**
 * The inode of an open socket, which is unique on this machine while any process holds it; -1: the descriptor is
 * closed.
 */
export function inodeOf(descriptor: number): number {
  if (descriptor < 0) return -1;
  try {
    return fstatSync(descriptor).ino;
  } catch {
    return -1; // EBADF: a thread may close what it shows to others
  }
}

/** `addressBytes` as above. Takes some 10 µs a question. */
export function openOtherSockets(
  addressBytes: (ip: Ip) => Uint8Array,
  system: string = process.platform,
): OtherSocket {
  return (system === "linux" ? openOtherSocket(addressBytes) : null) ?? (() => false);
}
