/** The audit log: who changed what, in the shape that the API, the store and a fleet's database share. */
import type { JsonValue } from "./control-configs.ts";

/** `owner`: one of the two secrets; `token`: a scoped one; `program`: weir itself, or its command line. */
export interface AuditActor {
  readonly kind: "owner" | "token" | "program";
  readonly name: string;
  /** Of a token. */
  readonly id?: string;
}

/** A change as it is reported. No member ever holds a secret, a credential or a subscription link. */
export interface AuditDraft {
  readonly actor: AuditActor;
  /** The peer's address, `unix socket`, `pipe` or `command line`; what a reverse proxy says stands behind it. */
  readonly from: string;
  /** The id that the answer carried as `x-request-id`; "" where there was no request. */
  readonly request: string;
  /** `user.create`, or the method and pattern of a route: `PUT /proxies/:name`. */
  readonly action: string;
  /** What it was done to, as the path named it; "" where the action says it. */
  readonly target: string;
  readonly listener?: string;
  readonly user?: { readonly id: string; readonly name: string };
  /** What has changed, as it was and as it is. */
  readonly before?: JsonValue;
  readonly after?: JsonValue;
}

export interface AuditEntry extends AuditDraft {
  /** From 1, without gaps. */
  readonly seq: number;
  readonly atMs: number;
  /** SHA-256 of the entry before, in hexadecimal digits; of the first one 64 zeros. */
  readonly previous: string;
  /** SHA-256 of this entry's line. */
  readonly hash: string;
}

export interface AuditQuery {
  /** Entries before this one, the newest first; null: from the end. */
  readonly before: number | null;
  readonly limit: number;
  /** Name or id of an actor. */
  readonly actor: string | null;
  /** What an action begins with. */
  readonly action: string | null;
  /** A listener, the id or name of a user, or a target. */
  readonly about: string | null;
  readonly sinceMs: number | null;
  readonly untilMs: number | null;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** For `before` of the next page; null: there is none. */
  readonly next: number | null;
  readonly head: AuditHead;
}

/** The end of the chain: who has kept an earlier one can tell whether what it stood for is still there. */
export interface AuditHead {
  /** 0: no entry yet. */
  readonly seq: number;
  readonly hash: string;
}

export interface AuditVerdict {
  readonly head: AuditHead;
  /** The oldest entry that is kept; those before went with their time. 0: there is none. */
  readonly first: number;
  readonly entries: number;
  /** A sentence for each break of the chain; empty: it is whole. */
  readonly faults: readonly string[];
}
