/** What a backup holds, as `POST /api/svc/restore/check` answers. */
export interface BackupView {
  readonly sum: string;
  /** Unix seconds. */
  readonly created_at: number;
  readonly version: string;
  /** Null: it has none, and the present one stays. */
  readonly configuration: string | null;
  readonly same_configuration: boolean;
  readonly other_sign_in: boolean;
  readonly other_address: boolean;
  readonly stores: readonly {
    readonly role: string;
    readonly path: string;
    readonly counts: Readonly<Record<string, number>>;
  }[];
  readonly listeners: readonly { readonly name: string; readonly type: string }[];
  readonly users: number;
  readonly tokens: number;
  readonly choices: number;
  readonly lost: Readonly<Record<"listeners" | "users" | "tokens", readonly string[]>>;
}
