/** A fleet as `/api/svc/fleet` answers: only what the dashboard reads. All text in it is untrusted. */

export interface FleetNode {
  readonly name: string;
  readonly address: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly version: string;
  /** Unix ms, by the clock of the database. */
  readonly seen_at: number;
  readonly state: "live" | "late" | "lost" | "draining";
  /** The one that answers. */
  readonly self?: true;
  readonly lag: { readonly changes: number; readonly milliseconds: number };
  readonly connections: number;
  readonly last_minute: { readonly upload_bytes: number; readonly download_bytes: number };
  /** Ledger entries that the database does not have. */
  readonly unacknowledged: number;
}

export interface Fleet {
  readonly self: string;
  readonly database: {
    readonly state: "up" | "away";
    /** Unix ms. */
    readonly since: number;
    readonly reason?: string;
  };
  readonly nodes: readonly FleetNode[];
}
