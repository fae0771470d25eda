/**
 * Managed users as the admin API sees and commands them. Views are snapshots. Every listener has one revision that
 * grows with every change of its users; whoever changes something names the revision that was looked at.
 *
 * Errors of all changes, in this order: `ApiError` 404 (unknown user or listener), 409 (another revision; the message
 * names both), 400 (a field), 409 (the state file was changed by somebody else), and anything else is a 500. After an
 * error everything is as before.
 */
export interface UsersControl {
  /** Null while nothing is managed: no `svc` block, or its state could not be loaded. */
  readonly admin: UserAdmin | null;
}

export interface UserAdmin {
  /** At least 32 bytes; only for comparing. */
  readonly secret: string;
  protocols(): readonly ManagedProtocolView[];
  /** Sorted by tag. */
  inbounds(): readonly ManagedInboundView[];
  /** Sorted by listener, name, id; of one listener or of all. */
  users(inbound: string | null): readonly UserView[];
  user(id: string): UserDetailView | null;
  create(draft: UserDraft): UserDetailView;
  update(id: string, change: UserChange): UserDetailView;
  remove(id: string, revision: number): void;
  resetTraffic(id: string, revision: number): UserDetailView;
  /** The old link is dead when this returns. `subscriptionUrl` is "" for a user who may have none. */
  rotateSubscription(
    id: string,
    revision: number,
  ): { readonly revision: number; readonly subscriptionUrl: string };
  /** The share link behind a subscription token; null for a token of nobody who may have one. */
  shareLink(token: string): string | null;
}

export interface ManagedProtocolView {
  readonly type: string;
  readonly label: string;
  readonly credential: string;
}

export interface ManagedInboundView {
  readonly tag: string;
  readonly type: string;
  readonly credential: string;
  readonly hasFlow: boolean;
  readonly userCount: number;
  readonly enabledUserCount: number;
  readonly revision: number;
  /** What the running listener has accepted; never more than `revision`. */
  readonly appliedRevision: number;
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
}

/** Sensitive. */
export interface UserDetailView extends UserView {
  readonly credentialKind: "uuid" | "password";
  readonly credential: string;
  /** Null: not eligible. */
  readonly subscriptionUrl: string | null;
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
}
