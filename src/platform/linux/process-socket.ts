/**
 * The process that owns a local socket: by sock_diag where FFI is available, by the text tables of /proc/net elsewhere.
 */
import { readFile } from "node:fs/promises";
import type { Endpoint, Ip, Network } from "#core/session.ts";

export interface SocketOwner {
  readonly uid: number;
  /** What /proc/…/fd shows as `socket:[inode]`; 0 for a socket that no program holds any more. */
  readonly inode: number;
}

/** Null where there is no such socket. `peer` is what the socket is connected to. */
export type FindOwner = (network: Network, local: Endpoint, peer: Endpoint) => Promise<SocketOwner | null>;

/** The address as the kernel's structures hold it: 4 or 16 bytes in network order. */
export type AddressBytes = (ip: Ip) => Uint8Array;

const BIG_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 0;

/** Reads /proc/net/{tcp,tcp6,udp,udp6}: works without FFI, costs time with every socket of the machine. */
export function findInTables(addressBytes: AddressBytes, folder = "/proc/net"): FindOwner {
  return async (network, local, peer) => {
    const bytes = addressBytes(local.ip);
    const wanted = new Set([tableText(bytes, local.port), tableText(mapped(bytes), local.port)]);
    // An unconnected UDP socket shows no peer and perhaps no local address.
    if (network === "udp")
      for (const length of [4, 16]) wanted.add(tableText(new Uint8Array(length), local.port));
    const remote = addressBytes(peer.ip);
    const peers = new Set([tableText(remote, peer.port), tableText(mapped(remote), peer.port)]);
    for (const table of bytes.length === 4 ? [network, `${network}6`] : [`${network}6`]) {
      const text = await readFile(`${folder}/${table}`, "latin1").catch(() => ""); // no IPv6: no table
      const owner = ownerIn(text, wanted, network === "tcp" ? peers : null);
      if (owner !== null) return owner;
    }
    return null;
  };
}

// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode (proc_net_tcp)
const LINE = /^ *\d+: ([0-9A-F:]+) ([0-9A-F:]+) [0-9A-F]{2} \S+ \S+ \S+ +(\d+) +\d+ (\d+)/gm;

function ownerIn(
  text: string,
  locals: ReadonlySet<string>,
  peers: ReadonlySet<string> | null,
): SocketOwner | null {
  for (const [, local = "", remote = "", uid, inode] of text.matchAll(LINE))
    if (locals.has(local) && (peers === null || peers.has(remote)))
      return { uid: Number(uid), inode: Number(inode) };
  return null;
}

function mapped(bytes: Uint8Array): Uint8Array {
  if (bytes.length === 16) return bytes;
  return Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...bytes);
}

/** Each word of the address as a number in the machine's own order, then the port: `0100007F:1F90`. */
function tableText(bytes: Uint8Array, port: number): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 4) {
    const word = [...bytes.subarray(at, at + 4)];
    for (const byte of BIG_ENDIAN ? word : word.reverse()) text += byte.toString(16).padStart(2, "0");
  }
  return `${text}:${port.toString(16).padStart(4, "0")}`.toUpperCase();
}
