import type { FleetAdmin } from "./fleet.ts";
import type { Rollback } from "./rollback.ts";
import type { Ip } from "./session.ts";
import type { ClientForms } from "./share-link.ts";

/**
 * Managed users as the admin API sees and changes them. Views are snapshots. Every listener has one revision that grows
 * with every change of its users; every change names the revision that it is based on.
 *
 * Errors of all changes, in this order: `ApiError` 404 (unknown user or listener), 409 (another revision; the message
 * names both), 400 (a field), 409 (the state file was changed by another program), and anything else is a 500, or a 503
 * where too many changes of one listener wait already. After an error everything is as before. A change that has
 * settled is on the medium, and is visible only from then on.
 */
export interface UsersControl {
  /** Null while nothing is managed: no `svc` block, or its state could not be loaded. */
  readonly admin: UserAdmin | null;
  /** Not null: nothing is managed only because the state file cannot be opened; it is tried again. */
  readonly waiting: WaitingUsers | null;
}

export interface WaitingUsers {
  /** That of the admin API; only for comparing. */
  readonly secret: string;
  /** With the absolute path of the file. */
  readonly reason: string;
  readonly store: string;
}

export interface UserAdmin {
  /** At least 32 bytes; only for comparing. */
  readonly secret: string;
  /** The state file was older than what had been acknowledged, and that was not accepted; null: it was not. */
  readonly rollback: Rollback | null;
  /** Null: this program is not one of several with the same users. */
  readonly fleet: FleetAdmin | null;
  /** The present path of a subscription that was found under `path` with another program; null: none was. */
  formerSubscription(path: string): string | null;
  protocols(): readonly ManagedProtocolView[];
  /** Sorted by tag. */
  inbounds(): readonly ManagedInboundView[];
  /** Sorted by listener, name, id; of one listener or of all. */
  users(inbound: string | null): readonly UserView[];
  user(id: string): UserDetailView | null;
  /** What a user moved in the last day, since the program runs; null where there is no such user. */
  usage(id: string): UsageView | null;
  /**
   * What a user moved in the last `days` days, also of one who was removed lately; null: neither is known. Throws `ApiError`
   * 404 where a fleet has these users.
   */
  history(id: string, days: number): HistoryView | null;
  /** Does any user have a limit of the kind? */
  limitKinds(): { readonly quota: boolean; readonly expiration: boolean };
  create(draft: UserDraft): Promise<UserDetailView>;
  update(id: string, change: UserChange): Promise<UserDetailView>;
  remove(id: string, revision: number): Promise<void>;
  resetTraffic(id: string, revision: number): Promise<UserDetailView>;
  /** The old link is dead when this settles. `subscriptionUrl` is "" for a user who may not have one. */
  rotateSubscription(
    id: string,
    revision: number,
  ): Promise<{ readonly revision: number; readonly subscriptionUrl: string }>;
  /** The content behind a subscription token; null when no user with a link has this token. */
  subscription(token: string): SubscriptionView | null;
}

export interface UsageView {
  readonly stepSeconds: number;
  /** Oldest first; steps in which nothing was moved are left out. */
  readonly steps: readonly UsageStep[];
}

/** Oldest first; what is silent is left out. */
export interface HistoryView {
  /** Of which listener. */
  readonly inbound: string;
  /** Null: the user is there. */
  readonly removedAtMs: number | null;
  /** In UTC. */
  readonly days: readonly UsageStep[];
  /** Of the last two days. */
  readonly hours: readonly UsageStep[];
}

export interface UsageStep {
  /** Unix seconds. */
  readonly startSeconds: number;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
}

/** Sensitive. One node. */
export interface SubscriptionLink extends ClientForms {
  readonly link: string;
}

/** Sensitive. */
export interface SubscriptionView extends ClientForms {
  /** Where it is: the token's own address. */
  readonly url: string;
  readonly link: string;
  /** Of a fleet, its further nodes; absent: there are none. */
  readonly further?: readonly SubscriptionLink[];
  /** Without a format it comes in the one that the client reads best. */
  readonly byAgent: boolean;
  /** What clients call it. */
  readonly title: string;
  readonly status: UserStatus;
  /** Of the quota's present period; without a quota, of the counters. */
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  /** 0: no quota. */
  readonly totalBytes: number;
  /** Null: never. */
  readonly expiresAtMs: number | null;
}

export interface ManagedProtocolView {
  readonly type: string;
  readonly label: string;
  readonly credential: string;
  readonly network: "tcp" | "udp";
  /** Not among those that the contract of the admin API names. */
  readonly isAdditional: boolean;
}

export interface ManagedInboundView {
  readonly tag: string;
  readonly type: string;
  readonly credential: string;
  readonly hasFlow: boolean;
  readonly userCount: number;
  readonly enabledUserCount: number;
  readonly revision: number;
  /** What the running listener has accepted; never more than `revision`. Of a fleet, the smallest over its live nodes. */
  readonly appliedRevision: number;
  /** By node; absent where there is no fleet. */
  readonly applied?: Readonly<Record<string, number>>;
}

/** When what was used of a quota counts no more: in UTC, at midnight, on Monday, on the first. */
export const QUOTA_CYCLES = ["day", "week", "month"] as const;
export type QuotaCycle = (typeof QUOTA_CYCLES)[number];

export interface UserQuota {
  /** Upload and download together; above 0. */
  readonly totalBytes: number;
  /** `never`: the counters of the user are what is used. `window`: what the last `windowSeconds` have seen. */
  readonly reset: "never" | QuotaCycle | "window";
  /** An hour to 365 days; 0 unless there is a window. */
  readonly windowSeconds: number;
}

/**
 * The limits of a user. A user past a limit is unknown to the listener, or has sessions refused; other users never
 * notice.
 */
export interface UserLimits {
  readonly quota: UserQuota | null;
  /** Null: never. */
  readonly expiresAtMs: number | null;
  /** Of all sessions together; 0: no limit. */
  readonly uploadBitsPerSecond: number;
  readonly downloadBitsPerSecond: number;
  /** TCP streams and UDP associations at once; 0: no limit. */
  readonly connections: number;
  /** Source addresses with sessions at once; 0: no limit. */
  readonly ips: number;
}

export interface QuotaView {
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  /** When the present cycle ends; null where the quota has none. */
  readonly resetsAtMs: number | null;
}

/** `limited`: the quota is used up. The first that holds of disabled, expired, limited. */
export type UserStatus = "active" | "disabled" | "expired" | "limited";

export interface OnlineIp {
  readonly ip: Ip;
  /** Sessions open now. */
  readonly connections: number;
  /** When one of them began or last moved bytes. */
  readonly lastSeenMs: number;
}

/** What operators write down about a user. It decides nothing, and the user never sees it. */
export interface UserRemarks {
  /** "": none. */
  readonly note: string;
  readonly labels: readonly string[];
}

export interface UserView {
  readonly id: string;
  readonly inbound: string;
  readonly type: string;
  readonly name: string;
  readonly flow: string;
  readonly enabled: boolean;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  readonly trafficGeneration: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly activeConnections: number;
  readonly revision: number;
  readonly appliedRevision: number;
  readonly status: UserStatus;
  readonly remarks: UserRemarks;
  readonly limits: UserLimits;
  /** Null without a quota. */
  readonly quota: QuotaView | null;
}

/** Sensitive. */
export interface UserDetailView extends UserView {
  readonly credentialKind: "uuid" | "password";
  readonly credential: string;
  /** Null: not eligible. */
  readonly subscriptionUrl: string | null;
  /** Where the user's sessions come from, the longest known first. */
  readonly online: readonly OnlineIp[];
}

/** Absent: not said. An empty credential counts as absent here. */
export interface UserDraft extends Omit<UserChange, "name"> {
  readonly inbound: string;
  readonly name: string;
}

/** What is absent stays as it is. */
export interface UserChange {
  readonly revision: number;
  readonly name?: string | undefined;
  readonly uuid?: string | undefined;
  readonly password?: string | undefined;
  readonly flow?: string | undefined;
  readonly enabled?: boolean | undefined;
  readonly limits?: LimitsChange | undefined;
  /** As they were written, unchecked; what is empty is taken away. */
  readonly note?: string | undefined;
  readonly labels?: readonly string[] | undefined;
}

/** As they were written, unchecked; 0 takes a limit away. */
export interface LimitsChange {
  readonly quota?:
    | {
        readonly totalBytes: number;
        readonly reset?: string | undefined;
        /** `30d`; suffixes m, h, d, w. */
        readonly window?: string | undefined;
      }
    | undefined;
  readonly expiresAtMs?: number | undefined;
  readonly uploadBitsPerSecond?: number | undefined;
  readonly downloadBitsPerSecond?: number | undefined;
  readonly connections?: number | undefined;
  readonly ips?: number | undefined;
}
