import type { WebhookSettings } from "./webhook-settings.ts";

/** The parts of the `svc` block that are about the journal. */
export interface JournalSettings {
  readonly secret: string;
  /** Absolute path. */
  readonly path: string;
  readonly audit: AuditSettings;
  readonly webhooks: readonly WebhookSettings[];
}

export interface AuditSettings {
  readonly keepMs: number;
  readonly mostEntries: number;
}
