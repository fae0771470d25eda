/** The audit log as the API answers: only what the dashboard reads. All text in it is untrusted. */

export interface AuditEntry {
  readonly seq: number;
  /** Unix milliseconds. */
  readonly at: number;
  readonly actor: { readonly kind: string; readonly name: string };
  readonly from: string;
  readonly action: string;
  readonly target: string;
  readonly listener?: string;
  readonly user?: { readonly id: string; readonly name: string };
  readonly before?: unknown;
  readonly after?: unknown;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly next?: number;
}

export interface AuditVerdict {
  readonly entries: number;
  readonly faults: readonly string[];
}
