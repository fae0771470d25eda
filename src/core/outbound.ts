import type { Duplex } from "node:stream";
import type { DialError } from "./errors.ts";
import type { SafeFiles } from "./files.ts";
import type { HostMemory } from "./host-memory.ts";
import type { Log } from "./log.ts";
import type { DialPlan, DialTemplate } from "./dial-plan.ts";
import type { Reach } from "./reach.ts";
import type { Resolver } from "./resolver.ts";
import type { DatagramFlow, Destination, Endpoint, Metadata, Network } from "./session.ts";
import type { TlsProvider } from "./tls.ts";
import type { Trust } from "./trust.ts";

export interface DialContext {
  /** Ends the dial; after the dial it means nothing. */
  readonly signal: AbortSignal;
  /** Null when the core dials for itself (health check, download, DNS). */
  readonly metadata: Metadata | null;
  /**
   * What kernel sockets that lead straight to the destination may be opened to. Null or absent: anything, for the
   * destination is ours or the configuration's. An outbound that dials its server does not pass it on.
   */
  readonly reach?: Reach | null;
}

/** Opens connections. Failures are `DialError`; nothing is left open after one. */
export interface Dialer {
  /** The stream is connected as far as the protocol can tell; the caller handles its error events from then on. */
  connect(destination: Destination, context: DialContext): Promise<Duplex>;
  /**
   * The address where `connect` would lead by one ordinary kernel socket, for callers that can open it at less cost; a
   * promise where names must be resolved, which rejects as `connect` does. Throws where the client is not allowed.
   * Null: not by such a socket. Absent: never.
   */
  plain?(
    destination: Destination,
    reach: Reach | null,
    signal: () => AbortSignal,
  ): DialPlan | Promise<DialPlan | null> | null;
  /** What `plain` answers for every address, but for those of our own listeners; null or absent: that is not known. */
  template?(): DialTemplate | null;
  /** A path for datagrams to any destination; `destination` is the first one. */
  associate(destination: Destination, context: DialContext): Promise<DatagramFlow>;
  /**
   * A path for datagrams to this address alone, by a kernel socket of its own; its `closed` rejects with `DialError` where
   * the port is closed. Absent or null: there is only `associate`.
   */
  associateWith?(to: Endpoint): Promise<DatagramFlow> | null;
}

/**
 * A proxy node, a group or DIRECT. Built with the Dialer that reaches its server and opens no socket itself, so chains
 * nest and tests in memory cost nothing. Disposing ends pools and timers of its own, not the connections that it
 * opened.
 */
export interface Outbound extends Dialer, AsyncDisposable {
  readonly name: string;
  /** API spelling: Direct, Reject, Http, Socks5 … */
  readonly type: string;
  readonly networks: ReadonlySet<Network>;
  /**
   * Not dialled, because matching continues. `rule`: behind the rule of the main list, out of all sub-rule lists
   * (PASS); `line`: behind the line that names it (PASS-RULE).
   */
  readonly passes?: "rule" | "line";
  /** True for REJECT and REJECT-DROP: nothing is dialled, so its failures are not those of a node. */
  readonly rejects?: true;
  /** Why no dial can succeed: what its file asks for is not in this build. Absent: it can be dialled. */
  readonly inert?: string;
  /** True: datagrams reach its server as datagrams, so what leads there has to carry them. Absent: inside a stream. */
  readonly sendsDatagrams?: boolean;
  /** Of a chain: the names of what it leads through before the node that gives it its own name. */
  readonly through?: readonly string[];
}

/** An outbound that picks another. Picking until the pick is no group gives the chain. */
export interface Group extends Outbound {
  readonly members: readonly Outbound[];
  /** True: no datagrams go through it, whatever its member carries (`disable-udp`). */
  readonly disablesUdp?: boolean;
  /** True: its member differs from session to session, for sessions that are alike, too. */
  readonly spreads?: boolean;
  /** True: its member is the same for all sessions, and changes by a command, or by what tests have found (`Delays`). */
  readonly isSteady?: true;
  /** `metadata` null: only to see the member; it does not count as a use of the group. */
  pick(metadata: Metadata | null): Outbound;
  /** A session uses what was picked without it (`metadata` null). Absent: the group does not care. */
  used?(): void;
  /** How a dial of a session through this group went. */
  dialled(failure: DialError | null): void;
}

export function isGroup(outbound: Outbound): outbound is Group {
  return "pick" in outbound;
}

export type LookUpAt = (
  servers: readonly string[],
  key: string,
  dialer: Dialer,
) => Resolver & AsyncDisposable;

/** What an outbound is given. */
export interface OutboundEnv {
  readonly name: string;
  /** Reaches the server: DIRECT with the node's own interface, mark and IP version, or its `dialer-proxy`. */
  readonly dialer: Dialer;
  /** Names of servers. */
  readonly resolver: Resolver;
  /** Names of destinations, for a node that is told addresses alone. Absent: as those of servers. */
  readonly destinations?: Resolver;
  /**
   * Looks names up at these servers, which are texts as in the `dns` section, through a dialer. `key` is where they stand.
   * Throws `ConfigError` where one is none.
   */
  readonly lookUpAt?: LookUpAt;
  /** What tells dialers apart that lead different ways, for what a node keeps beyond a generation. Absent: as empty. */
  readonly way?: string;
  /** Absent: what the node keeps ends with it. */
  readonly memory?: HostMemory;
  readonly files: SafeFiles;
  readonly log: Log;
  /** Unix time for protocols that compare clocks with their peer: the system's, or better (`ntp`). */
  readonly nowMs: () => number;
  /** Absent: the `dns` section is off. */
  readonly dns?: DnsAnswers;
  /** Absent: the authorities of the runtime alone. */
  readonly trust?: Trust;
  readonly tls: TlsProvider;
}

/** The core's DNS service, for questions that were meant for another server. */
export interface DnsAnswers {
  /**
   * The answer to one datagram, cut to what its asker takes, and to `mostBytes`. Throws `ProtocolError` where it is no
   * question.
   */
  answer(message: Uint8Array, mostBytes?: number): Promise<Uint8Array>;
  /** Answers length-prefixed questions until either side ends. Takes the stream over. */
  serve(stream: Duplex): void;
}

/** From the first pick to the leaf, the leaf last. */
export function unwrap(outbound: Outbound, metadata: Metadata | null): readonly Outbound[] {
  const chain = [outbound];
  for (let at = outbound; isGroup(at);) {
    at = at.pick(metadata);
    chain.push(at);
  }
  return chain;
}

export const BOTH_NETWORKS: ReadonlySet<Network> = new Set(["tcp", "udp"]);
export const TCP_ONLY: ReadonlySet<Network> = new Set(["tcp"]);
