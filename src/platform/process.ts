/** The door to "which local program opened this connection": systems that cannot tell answer null. */
import { fstatSync } from "node:fs";
import type { ProcessInfo } from "#core/rule.ts";
import type { Endpoint, Ip, Network } from "#core/session.ts";
import { openOtherSocket } from "./linux/other-socket.ts";
import { openLinuxProcesses } from "./linux/process.ts";

/** May a `UID` rule be written on this system? */
export const KNOWS_USER_IDS: boolean = process.platform === "linux" || process.platform === "android";

/** A client's socket as it looks from the client's side. */
export interface SocketQuery {
  readonly network: Network;
  /** Its own address. */
  readonly source: Endpoint;
  /** What it may be connected to: the listener, or, redirected on the way, where it wanted to go. */
  readonly peers: readonly Endpoint[];
}

/** Null: no socket of this machine, or nobody may know. Never rejects. */
export interface ProcessLookup {
  /** The owner of the socket; one look into the kernel's tables. */
  uid(query: SocketQuery): Promise<number | null>;
  /** The program that holds the socket: a search through open files where it was not seen lately. */
  process(query: SocketQuery): Promise<ProcessInfo | null>;
}

const NOBODY: ProcessLookup = { uid: async () => null, process: async () => null };

/** `addressBytes` gives an address as 4 or 16 bytes in network order. */
export function openProcessLookup(
  addressBytes: (ip: Ip) => Uint8Array,
  system: string = process.platform,
): ProcessLookup {
  return system === "linux" ? openLinuxProcesses(addressBytes) : NOBODY;
}

/**
 * Has another TCP connection of this machine the same two ends as the socket of this inode? It can where one of them is
 * bound to a device (SO_BINDTODEVICE); only one that is bound to none is seen. False where nobody can tell.
 */
export type OtherSocket = (local: Endpoint, peer: Endpoint, inode: number) => boolean;

/** What tells a socket from all others that are open, whoever holds it; -1: the descriptor is closed. */
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
