/** Traffic control as the Controller answers: only what the dashboard reads. */

import type { Rollback } from "./types.ts";

export interface Counters {
  readonly upload_bytes: number;
  readonly download_bytes: number;
  readonly connections: number;
  readonly exceeded_events: number;
}

export type PolicyKind = "global" | "device" | "rule" | "target";

export interface PolicyStatus {
  readonly policy: {
    readonly id: string;
    readonly name?: string;
    readonly kind: PolicyKind;
    readonly enabled: boolean;
    readonly upload_bps?: number;
    readonly download_bps?: number;
    readonly quota: { readonly total_bytes?: number; readonly window_seconds?: number };
    readonly source_cidrs?: readonly string[];
    readonly rule: { readonly type?: string; readonly payload?: string; readonly target?: string };
    readonly target: { readonly kind?: "proxy" | "group"; readonly name?: string };
  };
  readonly counters: Counters;
  /** Inside the quota's window. */
  readonly rolling: Counters;
  readonly active_connections: number;
  readonly over_quota: boolean;
}

export interface GovernanceStatus {
  readonly enabled: boolean;
  readonly revision: number;
  /** Why the store is not open; absent: it is. */
  readonly store_error?: string;
  /** Its time is in Unix seconds. */
  readonly rollback?: Rollback;
  readonly policies: readonly PolicyStatus[];
}

/** A policy in the keys of the file; what is no limit is left out. */
export interface PolicyDocument {
  readonly id?: string;
  readonly name?: string;
  readonly enabled?: boolean;
  readonly "upload-bps"?: number;
  readonly "download-bps"?: number;
  readonly quota?: QuotaDocument;
  readonly portal?: boolean;
  readonly mac?: string;
  readonly "source-cidrs"?: readonly string[];
  readonly type?: string;
  readonly payload?: string;
  readonly kind?: string;
  readonly target?: string;
}

export interface QuotaDocument {
  readonly "total-bytes"?: number;
  readonly "upload-bytes"?: number;
  readonly "download-bytes"?: number;
  readonly window?: string;
  readonly "overage-upload-bps"?: number;
  readonly "overage-download-bps"?: number;
  readonly portal?: boolean;
}

export interface GovernanceDocument {
  readonly enabled: boolean;
  readonly global?: PolicyDocument;
  readonly devices?: readonly PolicyDocument[];
  readonly rules?: readonly PolicyDocument[];
  readonly targets?: readonly PolicyDocument[];
  /** What the dashboard hands back as it came. */
  readonly [key: string]: unknown;
}

export interface Envelope {
  readonly revision: number;
  readonly config: GovernanceDocument;
}

export type Granularity = "hour" | "day" | "month";

export interface Report {
  readonly buckets: readonly { readonly start: number; readonly counters: Counters }[];
}
