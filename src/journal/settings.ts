import type { WebhookSettings } from "./webhook-settings.ts";

/** The parts of the `svc` block that are about the journal. */
export interface JournalSettings {
  readonly secret: string;
  /** Absolute path. */
  readonly path: string;
  readonly audit: AuditSettings;
  /** Of one-time codes; null: the secrets open everything by themselves. */
  readonly totpKey: Buffer | null;
  readonly webhooks: readonly WebhookSettings[];
}

export interface AuditSettings {
  readonly keepMs: number;
  readonly mostEntries: number;
}
