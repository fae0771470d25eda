import type { Socket as UdpSocket } from "node:dgram";
import type { Socket } from "node:net";

/** A kernel TCP socket. Named here so that `core` says which concrete class the fast path can take over. */
export type StreamSocket = Socket;
/** A kernel UDP socket. */
export type DatagramSocket = UdpSocket;
