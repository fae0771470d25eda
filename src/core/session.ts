import type { Duplex } from "node:stream";
import type { ClientWire, WorkerConnection } from "./accepted.ts";
import type { Destination, Endpoint, Ip } from "./endpoint.ts";

export type { Destination, Endpoint, Ip } from "./endpoint.ts";

export type Network = "tcp" | "udp";

/** An address with a prefix length, host bits kept: `198.18.0.1/16`. */
export interface IpPrefix {
  readonly ip: Ip;
  readonly bits: number;
}

/** Where a session came in: what IN-* rules read and dashboards show. */
export interface InboundInfo {
  /** The listener's name; `DEFAULT-MIXED` and the like for the top-level ports. */
  readonly name: string;
  /** API spelling of what the client spoke: HTTP, HTTPS (CONNECT), Socks4, Socks5, Tunnel, Redir, TProxy, Tun … */
  readonly type: string;
  /** The authenticated user, if the inbound knows users. */
  readonly user: string | null;
  /** Of a managed user: the id, which stays when the name changes. */
  readonly userId?: string;
  /** The listening side's own address of this connection. */
  readonly local: Endpoint;
  /** Its clients prove who they are and come from anywhere (servers of encrypted protocols); absent: from the networks around. */
  readonly isRemote?: true;
  /** Name of a sub-rule list that replaces `rules` for this listener. */
  readonly ruleList: string | null;
  /** Name of a proxy or group that takes everything of this listener, without rules. */
  readonly target: string | null;
}

/** What the inbound knew when it accepted. Frozen: later stages return new values, they do not edit this. */
export interface Metadata {
  /** UUID text; unique in the process. */
  readonly id: string;
  /** `icmp`: a ping, which no session carries; only rules are asked. */
  readonly network: Network | "icmp";
  readonly source: Endpoint;
  readonly destination: Destination;
  readonly inbound: InboundInfo;
  /** DSCP code point 0–63 where the inbound can see it (tproxy UDP). */
  readonly dscp: number | null;
  readonly acceptedAtMs: number;
}

/** One TCP connection. The holder of the stream owns it: its errors, its end, its destruction. */
export interface StreamSession {
  readonly network: "tcp";
  readonly metadata: Metadata;
  /** Opened with `allowHalfOpen`; bytes that were read too early have been put back with `unshift`. */
  readonly stream: Duplex;
  /**
   * Sends the client the result of the dial in the inbound's protocol; null is success. The first call counts, later
   * ones do nothing; it never throws. With sniffing it comes early, before the dial.
   */
  reply(failure: Error | null): void;
  /**
   * Called when the connection is over, also when its bytes were moved elsewhere: a worker that takes the kernel socket
   * over closes the stream long before. Never throws. Absent: no caller needs it.
   */
  readonly ended?: () => void;
  /**
   * The connection while a worker has its socket. Looking at `stream` takes the socket from the worker. Absent or null:
   * the event loop has it.
   */
  readonly offloaded?: OffloadedClient | null;
}

/** A client whose socket a worker has. */
export interface OffloadedClient {
  readonly worker: WorkerConnection;
  /** What it is answered when its destination is reached; empty: nothing. */
  readonly success: Uint8Array;
  /** Absent: its bytes are the payload. */
  readonly wire?: ClientWire;
}

export interface Datagram {
  readonly payload: Uint8Array;
  /** From a client: where to. To a client: where from. */
  readonly destination: Destination;
  /** Two bits of the IP header (RFC 3168 §5): 2 ECT(0), 3 congestion was met. Absent: unknown, or 0. */
  readonly ecn?: number;
}

/**
 * A two-way path for datagrams. `send` never waits and may drop. `receive` is called once, before anything can
 * arrive. Both ways a payload is lent until the call returns, for its memory is used again: a receiver that keeps it makes a copy
 * (`keptDatagram`). `closed` settles when the path ends by itself.
 */
export interface DatagramFlow extends AsyncDisposable {
  send(item: Datagram): void;
  /** The payload is datagrams of `size` bytes each, one behind another; the last may be shorter. Absent: only `send`. */
  sendRun?(item: Datagram, size: number): void;
  receive(on: (item: Datagram) => void): void;
  /** From now on datagrams come with `ecn`, and those that go may have ECT(0). False, or absent: this path cannot. */
  useEcn?(): boolean;
  readonly closed: Promise<void>;
  /** Sends the client a refusal for datagrams to a destination, as it came; absent: the protocol has none. */
  refuse?(destination: Destination): void;
  /** Of a flow that leaves this machine by sockets of its own: their ports, as they are now. */
  readonly localPorts?: readonly number[];
}

/** All datagrams of one client socket (full cone: one flow per source), whatever their destinations. */
export interface DatagramSession {
  readonly network: "udp";
  /** `destination` is that of the first datagram. */
  readonly metadata: Metadata;
  readonly flow: DatagramFlow;
  /** Silence after which a path of it ends; absent: as for every other inbound. */
  readonly idleMs?: number;
}

export type Session = StreamSession | DatagramSession;

/** `host:port` as people write it, IPv6 in brackets; the name where there is one. */
export function destinationText({ host, ip, port }: Destination): string {
  if (host !== null) return `${host}:${port}`;
  return ip !== null && ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`;
}

export function endpointText({ ip, port }: Endpoint): string {
  return ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`;
}
