/** Managed users as the admin API answers: only what the dashboard reads. All text in it is untrusted. */

import type { Rollback } from "./types.ts";

export interface AdminOverview {
  /** Its time is in Unix milliseconds. */
  readonly rollback?: Rollback;
}

export interface ManagedInbound {
  readonly tag: string;
  readonly type: string;
  readonly credential: "uuid" | "password";
  readonly flow: boolean;
  readonly user_count: number;
  readonly revision: number;
}

export interface ManagedUser {
  readonly id: string;
  readonly inbound: string;
  readonly type: string;
  readonly name: string;
  readonly flow: string;
  readonly enabled: boolean;
  readonly upload_bytes: number;
  readonly download_bytes: number;
  readonly active_connections: number;
  readonly created_at: number;
  readonly revision: number;
  /** Absent: none. */
  readonly note?: string;
  readonly labels?: readonly string[];
  /** Absent where there is no limit. */
  readonly status?: "active" | "disabled" | "expired" | "limited";
  readonly quota?: {
    readonly total_bytes: number;
    readonly reset?: string;
    readonly window?: string;
    readonly used_bytes: number;
    readonly resets_at?: number;
  };
  readonly expires_at?: number;
  readonly upload_bps?: number;
  readonly download_bps?: number;
  readonly connection_limit?: number;
  readonly ip_limit?: number;
}

/** Sensitive: kept while it is looked at. */
export interface UserDetail extends ManagedUser {
  readonly uuid?: string;
  readonly password?: string;
  readonly subscription_url?: string;
  readonly online_ips?: readonly {
    readonly ip: string;
    readonly connections: number;
    readonly last_seen: number;
    /** Of a fleet alone. */
    readonly node?: string;
  }[];
}

export interface UsageStep {
  /** Unix ms. */
  readonly start: number;
  readonly upload_bytes: number;
  readonly download_bytes: number;
}

/** Steps in which nothing was moved are left out. */
export interface UserUsage {
  readonly step_seconds: number;
  readonly steps: readonly UsageStep[];
}

/** The same of days, in UTC, and of hours. */
export interface UserHistory {
  readonly days: readonly UsageStep[];
  readonly hours: readonly UsageStep[];
}

export interface UserList {
  readonly users: readonly ManagedUser[];
  readonly inbounds: readonly ManagedInbound[];
}
