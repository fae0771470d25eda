/** Options of UDP sockets that carry many datagrams (socket(7), udp(7)). */
import { SOL_IP, SOL_IPV6 } from "./control-message.ts";
import type { Libc } from "./libc.ts";
import { SOL_UDP, UDP_GRO, UDP_SEGMENT } from "./message-layout.ts";
import { AF_INET } from "./sockaddr.ts";
import { SOCK_DGRAM, SOL_SOCKET } from "./numbers.ts";

const IP_RECVTOS = 13;
const IPV6_RECVTCLASS = 66;
const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;

/** What arrives while the event loop waits for its turn: some 100 ms at 75,000 datagrams of 1,200 bytes a second. */
const RECEIVE_BYTES = 8 * 1024 * 1024;
const SEND_BYTES = 2 * 1024 * 1024;

function int32(value: number): Uint8Array {
  return new Uint8Array(Int32Array.of(value).buffer);
}

/** With CAP_NET_ADMIN as much as we want; else as much as net.core.rmem_max and wmem_max allow. */
export function widenBuffers(libc: Libc, fd: number): void {
  const widen = (forced: number, asked: number, bytes: number): void => {
    try {
      libc.setsockopt(fd, SOL_SOCKET, forced, int32(bytes), "the size of a socket buffer");
    } catch {
      libc.setsockopt(fd, SOL_SOCKET, asked, int32(bytes), "the size of a socket buffer");
    }
  };
  widen(SO_RCVBUFFORCE, SO_RCVBUF, RECEIVE_BYTES);
  widen(SO_SNDBUFFORCE, SO_SNDBUF, SEND_BYTES);
}

/**
 * Does this kernel cut a message into datagrams (Linux 4.18)? It has to be asked: one that knows nothing of it would send
 * the whole as one datagram.
 */
export function cutsMessages(libc: Libc): boolean {
  const fd = libc.socket(AF_INET, SOCK_DGRAM);
  try {
    libc.getsockopt(fd, SOL_UDP, UDP_SEGMENT, int32(0));
    return true;
  } catch {
    return false; // ENOPROTOOPT
  } finally {
    libc.close(fd);
  }
}

/** The byte of each datagram's IP header that has DSCP and ECN comes with it. Throws `SystemError`. */
export function tellMarks(libc: Libc, fd: number, isV6: boolean): void {
  libc.setsockopt(fd, SOL_IP, IP_RECVTOS, int32(1), "IP_RECVTOS");
  if (isV6) libc.setsockopt(fd, SOL_IPV6, IPV6_RECVTCLASS, int32(1), "IPV6_RECVTCLASS");
}

/** Datagrams that the kernel has together are given together; without it (before Linux 5.0) one at a time. */
export function joinDatagrams(libc: Libc, fd: number): void {
  try {
    libc.setsockopt(fd, SOL_UDP, UDP_GRO, int32(1), "UDP_GRO");
  } catch {
    // ENOPROTOOPT
  }
}
