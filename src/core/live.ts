import type { Outbound } from "./outbound.ts";
import type { Decision } from "./router.ts";
import type { Facts, Rule } from "./rule.ts";
import type { Metadata } from "./session.ts";

/** An open connection as the API shows it. The numbers are read when their getters are. */
export interface LiveConnection {
  readonly metadata: Metadata;
  /** Null until the router has decided. */
  readonly decision: Decision | null;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  readonly startedAtMs: number;
  /** Address of the outbound's peer, empty where it is not known. */
  readonly remoteAddress: string;
  /** Ends it as a fault would; harmless when it has ended. The first reason counts. */
  close(reason?: EndReason): void;
}

/** What people see of a decision; every `Decision` is one. */
export interface SeenDecision extends Pick<
  Decision,
  "chain" | "destination" | "dnsMode" | "sniffedHost" | "records"
> {
  /** Absent: the connection has ended. */
  readonly outbound?: Outbound;
  readonly facts: Pick<Facts, "ip" | "process">;
  readonly rule: Pick<Rule, "apiType" | "payload"> | null;
  readonly entered?: Pick<Rule, "apiType" | "payload">;
}

/**
 * Why a connection is no more. `over`: both sides had said all, or one was cut off where a worker had the sockets, which
 * does not tell the two apart. `closed`: by the Controller, a limit, or another configuration.
 */
export const END_REASONS = [
  "over",
  "closed",
  "silent",
  "client-lost",
  "remote-lost",
  "not-dialled",
  "rejected",
] as const;
export type EndReason = (typeof END_REASONS)[number];

export interface EndedConnection {
  readonly metadata: Metadata;
  /** Null: it ended before the router had decided. */
  readonly decision: SeenDecision | null;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  readonly remoteAddress: string;
  /** Unix ms. */
  readonly endedAtMs: number;
  readonly reason: EndReason;
  /** The error's own words; "": there is none. */
  readonly detail: string;
}

/** All of them. Iterating copies nothing; one that opens or closes meanwhile may or may not be seen. */
export interface LiveConnections extends Iterable<LiveConnection> {
  readonly size: number;
  /** The last thousand that have ended, the newest first. */
  readonly ended: Iterable<EndedConnection>;
  /** Since the start of the process; never decrease, whatever closes. */
  readonly uploadTotalBytes: number;
  readonly downloadTotalBytes: number;
  /** False where there is none with this id. */
  close(id: string): boolean;
  /** Closes those that the predicate picks (all of them without one) and answers with how many. */
  closeAll(which?: (connection: LiveConnection) => boolean, reason?: EndReason): number;
}
