/** Who may do what through the Controller, in words that the API, the store of tokens and the audit log share. */
import type { AuditDraft } from "./audit.ts";

/**
 * What a token may be allowed. `read` sees what runs, without secrets; `operate` chooses, tests, closes and refreshes,
 * and reads; `users` manages users; `admin` does all of that, and changes configuration, policies and the program.
 */
export const SCOPES = ["read", "operate", "users", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** Of a route: `open` asks for no credential, `owner` for one of the two secrets; no token has that scope. */
export type RouteScope = "open" | Scope | "owner";

const INCLUDED: Readonly<Record<Scope, readonly RouteScope[]>> = {
  read: ["read"],
  operate: ["operate", "read"],
  users: ["users"],
  admin: ["admin", "users", "operate", "read"],
};

/** Whether a token with these scopes opens a route. */
export function allows(scopes: readonly Scope[], wanted: RouteScope): boolean {
  return wanted === "open" || scopes.some((scope) => INCLUDED[scope].includes(wanted));
}

/** What a token was made for; sent with a request it stands for its holder. */
export interface TokenGrant {
  /** Not secret. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** The one listener whose users it manages; null: all that its scopes open. */
  readonly listener: string | null;
  /** Aborts when the token is revoked or has expired: streams that it opened end then. */
  readonly gone: AbortSignal;
}

/** Who sent a request: `owner` had one of the two secrets, or there is none to have. */
export interface Caller {
  /** Of an owner the secret that was sent: `controller` or `svc`. */
  readonly name: string;
  readonly token: TokenGrant | null;
}

export const CONTROLLER_OWNER: Caller = { name: "controller", token: null };
export const SVC_OWNER: Caller = { name: "svc", token: null };

/** Who is signed in at a dashboard. A `mark` stands for a secret: with another secret it is another one. */
export interface SessionBook {
  /** Bounded in number: the oldest goes. The token is a credential of its own, and in this answer alone. */
  open(marks: readonly string[]): { readonly token: string; readonly lastsMs: number };
  opens(token: string, mark: string): boolean;
  close(token: string): void;
  /** Of a link for signing in; the one before is gone. It opens once, and not for long. */
  newCode(): string;
  /** In constant time. */
  takeCode(guess: string): boolean;
}

/** What became of a code. `later`: so many were wrong that none is looked at before. */
export type CodeAnswer =
  | { readonly kind: "right" | "wrong" | "used" }
  | { readonly kind: "later"; readonly afterSeconds: number };

/** The codes of `svc.totp-file`. A `mark` stands for a secret. */
export interface CodeGate {
  /** A secret opens nothing but a session, and that with a code. */
  readonly isOn: boolean;
  /** By which a session knows a secret: another one while codes are asked for, so that no session without one goes on. */
  sessionMark(mark: string): string;
  /** Is it what a command of this machine sends, which can read the file? In constant time. */
  opensAsCommand(credential: string, mark: string): boolean;
  /** A right code is right once. `from`: the address that it came from. Settles when its use is kept. Never rejects. */
  take(code: string, from: string): Promise<CodeAnswer>;
}

/** What the Controller asks of tokens and the audit log for every request. */
export interface AccessControl {
  readonly sessions: SessionBook;
  readonly codes: CodeGate;
  /** Null: unknown, revoked or expired. In constant time for all tokens with the same id. */
  tokenOf(token: string): TokenGrant | null;
  /**
   * Settles when the entry is on the medium, at once where no log is kept. Where the medium takes nothing it settles,
   * too, and the entry is written later: the change that it is about has been made. Never rejects.
   */
  record(draft: AuditDraft): Promise<void>;
}
