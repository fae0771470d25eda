/** What is kept beside the users' state file: tokens and the audit log, as the API reads and changes them. */
import type { AccessControl, Scope } from "./access.ts";
import type { EventFeed, WebhooksControl } from "./events.ts";
import type { AuditPage, AuditQuery, AuditVerdict } from "./audit.ts";

export interface TokenView {
  /** Not secret: a part of the token. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly listener: string | null;
  readonly createdAtMs: number;
  /** Null: never. */
  readonly expiresAtMs: number | null;
  /** Null: not yet. To the hour. */
  readonly usedAtMs: number | null;
}

export interface TokenDraft {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly listener: string | null;
  readonly expiresAtMs: number | null;
}

/**
 * All methods throw, or reject with, `ApiError` 500 while the journal cannot be opened, and 404 while there is no `svc`
 * block. After an error everything is as before.
 */
export interface JournalControl extends AccessControl {
  /** `svc.secret`, only for comparing; null: there is no `svc` block. */
  readonly secret: string | null;
  /** By name. */
  tokens(): readonly TokenView[];
  /** The token itself is in this answer and nowhere else. `ApiError` 400 for a bad draft, 409 for a name in use. */
  createToken(draft: TokenDraft): Promise<{ readonly view: TokenView; readonly token: string }>;
  /** `ApiError` 404 where there is none. It opens nothing once this settles. */
  revokeToken(id: string): Promise<TokenView>;
  audit(query: AuditQuery): AuditPage;
  /** One JSON document an entry, the oldest first, as they are hashed. */
  auditLines(): Iterable<string>;
  verifyAudit(): AuditVerdict;
  readonly events: EventFeed;
  readonly webhooks: WebhooksControl;
}
