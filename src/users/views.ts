/** Books and counters as the admin API shows them. */
import type { LinkedUser, Protocol } from "#core/protocol.ts";
import type { Endpoint } from "#core/session.ts";
import type {
  ManagedInboundView,
  ManagedProtocolView,
  OnlineIp,
  QuotaView,
  UserDetailView,
  UserStatus,
  UserView,
} from "#core/users.ts";
import type { ManagedListener, UsersSettings } from "./settings.ts";
import type { AppliedBy } from "./user-registry.ts";
import type { UserBook, UserRecord } from "./user-book.ts";

/** Those whose listeners' users can be managed. */
export function managedProtocols(protocols: readonly Protocol[]): readonly ManagedProtocolView[] {
  return protocols.flatMap(({ type, users }) => {
    if (users === undefined) return [];
    const { label, credential, network, isAdditional } = users;
    return [{ type, label, credential, network, isAdditional }];
  });
}

export function inboundView(book: UserBook, { support }: ManagedListener): ManagedInboundView {
  return {
    tag: book.listener,
    type: book.protocol,
    credential: support.credential,
    hasFlow: support.flows.length > 0,
    userCount: book.users.size,
    enabledUserCount:
      book.index?.enabledCount ?? [...book.users.values()].filter(({ enabled }) => enabled).length,
    revision: book.revision,
    appliedRevision: book.appliedRevision,
  };
}

/** A book with what is in force on every live node of the fleet, and that by node. */
export function overAllNodes(
  book: UserBook,
  self: string,
  others: readonly AppliedBy[],
): { readonly book: UserBook; readonly applied: Readonly<Record<string, number>> } {
  const applied: Record<string, number> = { [self]: book.appliedRevision };
  for (const { node, applied: revisions } of others) {
    const revision = revisions[book.listener];
    if (revision !== undefined) applied[node] = revision;
  }
  return { book: { ...book, appliedRevision: Math.min(...Object.values(applied)) }, applied };
}

/** What is measured of a user. */
export interface State {
  readonly traffic: { readonly uploadBytes: number; readonly downloadBytes: number };
  readonly quota: QuotaView | null;
  readonly activeConnections: number;
  readonly status: UserStatus;
}

export function userView(
  book: UserBook,
  user: UserRecord,
  { traffic, quota, activeConnections, status }: State,
): UserView {
  return {
    id: user.id,
    inbound: book.listener,
    type: book.protocol,
    name: user.name,
    flow: user.flow,
    enabled: user.enabled,
    uploadBytes: traffic.uploadBytes,
    downloadBytes: traffic.downloadBytes,
    trafficGeneration: user.trafficGeneration,
    createdAtMs: user.createdAtMs,
    updatedAtMs: user.updatedAtMs,
    activeConnections,
    revision: book.revision,
    appliedRevision: book.appliedRevision,
    status,
    limits: user.limits,
    remarks: user.remarks,
    quota,
  };
}

export function detailView(
  view: UserView,
  { credential }: UserRecord,
  { support }: ManagedListener,
  subscriptionUrl: string | null,
  online: readonly OnlineIp[],
): UserDetailView {
  return { ...view, credentialKind: support.credential, credential, subscriptionUrl, online };
}

/** The link that the user's client imports; null where the user may have none or no link would work. */
export function shareLinkOf(
  { listener: tag }: UserBook,
  user: UserRecord,
  listener: ManagedListener,
  { publicBaseUrl }: UsersSettings,
  endpoints: readonly Endpoint[],
): string | null {
  if (publicBaseUrl === "" || !user.enabled) return null;
  const host = new URL(publicBaseUrl).hostname.replace(/^\[(.*)\]$/, "$1");
  const { credential, flow } = user;
  return nodeLinkOf(listener, host, endpoints, { name: `${tag} - ${user.name}`, credential, flow });
}

/** Null where no link would work. */
export function nodeLinkOf(
  listener: ManagedListener,
  host: string,
  endpoints: readonly Endpoint[],
  user: LinkedUser,
): string | null {
  const bound = endpoints.find(({ port }) => port !== 0)?.port;
  const port = bound ?? listener.ports.find((one) => one !== 0);
  if (host === "" || port === undefined) return null;
  return listener.support.shareLink(listener.options, { host, port }, user);
}

/** `scheme://credential@host:port?query#name`: what is the user's own, and what the node's. */
const LINK = /^([^:]+:\/\/[^@]*)(@[^#]*)(#.*)?$/s;

/** The user's link of another node: what is the user's own is said as in `own`, all else as in `model`. Null: neither form. */
export function linkLike(model: string, own: string): string | null {
  const [, , place] = LINK.exec(model) ?? [];
  const [, who, , name = ""] = LINK.exec(own) ?? [];
  return who === undefined || place === undefined ? null : `${who}${place}${name}`;
}

/**
 * By their UTF-8 bytes, which is by code points. Those above U+FFFF begin with a smaller unit here than those from
 * U+E000 on. Allocates nothing: a list compares its names more than a hundred thousand times.
 */
export function compareBytes(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  for (let at = 0; at < end; at++) {
    const one = a.charCodeAt(at);
    const other = b.charCodeAt(at);
    if (one !== other) return rankOf(one) - rankOf(other);
  }
  return a.length - b.length;
}

function rankOf(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
