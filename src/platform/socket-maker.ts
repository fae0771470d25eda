/** What a socket must have before it connects. */
export interface SocketOptions {
  /** SO_MARK; 0 for none. */
  readonly routingMark: number;
  /** SO_BINDTODEVICE; empty for none. */
  readonly interfaceName: string;
}

/** Makes descriptors of unconnected sockets, non-blocking and close-on-exec. Errors carry the errno name in `code`. */
export interface SocketMaker {
  tcp(family: 4 | 6): number;
  /** An IPv6 socket takes IPv6 only. */
  udp(family: 4 | 6): number;
  /** Takes back a descriptor that nothing else has taken over. */
  discard(fd: number): void;
}
