/** A fleet of nodes as the API sees it: every node with the same users, from any of them. */

import type { Ip } from "./endpoint.ts";

/** `late`: not seen for 15 seconds; `lost`: for a minute. `draining`: it admits no new session and is in no subscription. */
export type NodeState = "live" | "late" | "lost" | "draining";

export interface FleetNodeView {
  readonly name: string;
  readonly address: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly version: string;
  readonly epoch: number;
  /** By the clock of the database. */
  readonly seenAtMs: number;
  readonly state: NodeState;
  /** Is it the one that answers? */
  readonly isSelf: boolean;
  /** Changes of users that it has not applied. */
  readonly lagChanges: number;
  /** Age of the oldest of these. */
  readonly lagMs: number;
  readonly connections: number;
  /** Of the last minute. */
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  /** Since its process began, of all connections. */
  readonly uploadTotalBytes: number;
  readonly downloadTotalBytes: number;
  /** Ledger entries that the database has not acknowledged. */
  readonly unacknowledged: number;
  /** By listener: the revision that is in force there. */
  readonly applied: Readonly<Record<string, number>>;
}

/** Between the node that answers and the database. */
export interface FleetDatabaseView {
  readonly isUp: boolean;
  readonly sinceMs: number;
  /** Why it is away; "" while it is not. */
  readonly reason: string;
}

export interface FleetView {
  readonly self: string;
  readonly database: FleetDatabaseView;
  /** Sorted by name; without the database, as they were last seen. */
  readonly nodes: readonly FleetNodeView[];
}

/** One user's traffic or connections on one node. */
export interface OnNode {
  readonly node: string;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  readonly connections: number;
}

/** One address of a user on one node. */
export interface OnlineAt {
  readonly node: string;
  readonly ip: Ip;
  readonly connections: number;
  readonly lastSeenMs: number;
}

/** What a user moved on one node in one hour. */
export interface HourAt {
  readonly node: string;
  /** Unix ms. */
  readonly startMs: number;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
}

/** What this node has of the fleet, and what it asks of the database. */
export interface FleetCounts {
  /** Users of whose quotas this node may spend a part, and the parts together. */
  readonly leases: number;
  readonly lentBytes: number;
  /** Addresses of users that the database has of this node. */
  readonly slots: number;
  /** Since the process began. */
  readonly statements: number;
  readonly errors: number;
  readonly milliseconds: number;
}

/** Rejections are `ApiError`s: 404 for an unknown node, 409 for one that lives, 503 without the database. */
export interface FleetAdmin {
  /** Brings what views show of other nodes up to date, as far as the database answers soon. Never rejects. */
  freshen(): Promise<void>;
  /** As it was last seen; asks nothing. */
  readonly seen: FleetView;
  readonly counts: FleetCounts;
  /** Where a user is online on other nodes; null: the database does not answer. Never rejects. */
  online(userId: string): Promise<readonly OnlineAt[] | null>;
  /** What a user moved in the last day, by node, oldest first; null as above. */
  hours(userId: string): Promise<readonly HourAt[] | null>;
  /** By user, of one or of all (null): traffic since the last reset and connections, by node; null as above. */
  byNode(userId: string | null): Promise<ReadonlyMap<string, readonly OnNode[]> | null>;
  view(): Promise<FleetView>;
  drain(node: string, isDraining: boolean): Promise<void>;
  /** Takes a lost node out. */
  forget(node: string): Promise<void>;
}
