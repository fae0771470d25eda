/** The parts of the `svc` block that are about the journal. */
export interface JournalSettings {
  readonly secret: string;
  /** Absolute path. */
  readonly path: string;
  readonly audit: AuditSettings;
}

export interface AuditSettings {
  readonly keepMs: number;
  readonly mostEntries: number;
}
