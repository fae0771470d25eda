/** One socket's owner from the kernel by a sock_diag netlink request (linux/sock_diag.h, linux/inet_diag.h). */
import type { Endpoint, Network } from "#core/session.ts";
import type { AddressBytes, FindOwner, SocketOwner } from "./process-socket.ts";
import { AF_INET, AF_INET6 } from "./sockaddr.ts";
import { byteAt } from "#lib/at.ts";
import { openFfi } from "#platform/ffi.ts";

const AF_NETLINK = 16;
const NETLINK_SOCK_DIAG = 4;
const SOCK_RAW_NONBLOCK_CLOEXEC = 3 | 0o4000 | 0o2000000;
const SOCK_DIAG_BY_FAMILY = 20;
const NLM_F_REQUEST = 1;
const IPPROTO = { tcp: 6, udp: 17 } as const;

const HEADER = 16; // struct nlmsghdr
const REQUEST = HEADER + 56; // + struct inet_diag_req_v2
const REPLY = HEADER + 72; // + struct inet_diag_msg

const SIGNATURES = {
  socket: { arguments: ["i32", "i32", "i32"], return: "i32" },
  send: { arguments: ["i32", "pointer", "i32", "i32"], return: "i32" },
  recv: { arguments: ["i32", "pointer", "i32", "i32"], return: "i32" },
  close: { arguments: ["i32"], return: "i32" },
} as const;

/** A socket of this machine as the kernel shows it; `state` is one of include/net/tcp_states.h. */
export interface DiagSocket extends SocketOwner {
  readonly state: number;
}

/**
 * The socket of exactly these ends that is bound to no device; for TCP, where there is none, the listener on `local`.
 * Null: neither, or the kernel could not be asked.
 */
export type FindSocket = (network: Network, local: Endpoint, peer: Endpoint) => DiagSocket | null;

/** Null where the kernel cannot be asked (`openDiag`). */
export function findByDiag(addressBytes: AddressBytes): FindOwner | null {
  const find = openDiag(addressBytes);
  return find === null ? null : async (network, local, peer) => find(network, local, peer);
}

/** Null where this runtime has no FFI or the kernel no sock_diag. A request takes some 10 µs and never blocks. */
export function openDiag(addressBytes: AddressBytes): FindSocket | null {
  const ffi = openFfi();
  if (ffi === null) return null;
  const { lib, functions } = ffi.dlopen(null, SIGNATURES);
  const open = () => functions.socket(AF_NETLINK, SOCK_RAW_NONBLOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  const trial = open();
  if (trial < 0) return null;
  functions.close(trial);
  // Lent to the kernel for the length of a call; the closure below keeps them and the library alive.
  const kept = { lib, request: new Uint8Array(REQUEST), reply: new Uint8Array(4096) };
  return (network, local, peer) => {
    const socket = open();
    if (socket < 0) return null; // out of descriptors: as for a socket that cannot be seen
    try {
      encodeRequest(kept.request, network, local, peer, addressBytes);
      if (functions.send(socket, kept.request, REQUEST, 0) !== REQUEST) return null;
      const length = functions.recv(socket, kept.reply, kept.reply.length, 0); // the kernel answers within send
      return decodeReply(kept.reply.subarray(0, Math.max(0, length)));
    } finally {
      functions.close(socket);
    }
  };
}

// nlmsghdr: LEN(4) TYPE(2) FLAGS(2) SEQ(4) PID(4), in the machine's order
// inet_diag_req_v2: FAMILY(1) PROTOCOL(1) EXT(1) PAD(1) STATES(4)
//   inet_diag_sockid: SPORT(2, big endian) DPORT(2, big endian) SRC(16) DST(16) IF(4) COOKIE(8)
function encodeRequest(
  into: Uint8Array,
  network: Network,
  local: Endpoint,
  peer: Endpoint,
  addressBytes: AddressBytes,
): void {
  const view = new DataView(into.fill(0).buffer);
  const header = new Uint16Array(into.buffer, 0, HEADER / 2);
  new Uint32Array(into.buffer, 0, 1)[0] = REQUEST;
  header[2] = SOCK_DIAG_BY_FAMILY;
  header[3] = NLM_F_REQUEST;
  const source = addressBytes(local.ip);
  const target = addressBytes(peer.ip);
  into[HEADER] = source.length === 4 ? AF_INET : AF_INET6;
  into[HEADER + 1] = IPPROTO[network];
  new Uint32Array(into.buffer, HEADER + 4, 1)[0] = 0xffff_ffff;
  // For UDP the kernel takes SRC for the remote side (udp_diag.c: "src and dst are swapped for historical reasons").
  const [first, second] = network === "tcp" ? [local, peer] : [peer, local];
  view.setUint16(HEADER + 8, first.port);
  view.setUint16(HEADER + 10, second.port);
  into.set(network === "tcp" ? source : target, HEADER + 12);
  into.set(network === "tcp" ? target : source, HEADER + 28);
  into.fill(0xff, HEADER + 48, HEADER + 56); // INET_DIAG_NOCOOKIE
}

// inet_diag_msg: FAMILY(1) STATE(1) TIMER(1) RETRANS(1) ID(48) EXPIRES(4) RQUEUE(4) WQUEUE(4) UID(4) INODE(4)
function decodeReply(reply: Uint8Array): DiagSocket | null {
  if (reply.length < REPLY || new Uint16Array(reply.slice(4, 6).buffer)[0] !== SOCK_DIAG_BY_FAMILY)
    return null;
  const [uid = 0, inode = 0] = new Uint32Array(reply.slice(HEADER + 64, HEADER + 72).buffer);
  return { state: byteAt(reply, HEADER + 1), uid, inode };
}
