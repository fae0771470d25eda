/** Tokens as the API answers: only what the dashboard reads. All text in it is untrusted. */

export const SCOPES = ["read", "operate", "users", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

export interface Token {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Its users alone; absent: all that the scopes open. */
  readonly listener?: string;
  /** Unix milliseconds; absent: never. */
  readonly created_at: number;
  readonly expires_at?: number;
  readonly used_at?: number;
}

/** Sensitive: said once, and nowhere else. */
export interface NewToken extends Token {
  readonly token: string;
}
