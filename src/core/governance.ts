/** What the API reads and commands of traffic control. Times are Unix seconds, amounts bytes, rates bit/s. */
import type { Dimension } from "./policy.ts";
import type { Rollback } from "./rollback.ts";

export interface GovernanceControl {
  readonly enabled: boolean;
  nowSeconds(): number;
  status(): GovernanceView;
  /** The running document as it can be sent back, in the keys of the file. */
  policies(): PoliciesView;
  /**
   * All or nothing. `ApiError` 409 for a stale revision, `ConfigError` for a bad document, `ApiError` 500 where it could
   * not be put in force. `persist` also writes the block into the configuration file, comments kept: `ApiError` 400
   * where the configuration is no file.
   */
  replace(change: PoliciesChange): Promise<PoliciesView>;
  /** In file order; each is made when it is read. */
  rules(): Iterable<RuleSignatureView>;
  /** The status after it. Null: no such policy. Rejects with `ApiError` 500 where it could not be committed or no store is open; nothing has changed then. */
  reset(id: string): Promise<GovernanceView | null>;
  /** Buckets with from <= start < to, ascending; an unknown key has none. */
  report(query: ReportQuery): readonly ReportBucketView[];
  /** `month`: `2026-10`, in the time zone of reports; null: the last one that is over. Throws `ApiError` 400 for another text. */
  monthReport(month: string | null): MonthReportView;
}

export interface MonthReportView {
  readonly from: number;
  /** The beginning of the next one. */
  readonly to: number;
  readonly timeZone: string;
  readonly isOver: boolean;
  /** By id. */
  readonly policies: readonly MonthPolicyView[];
}

export interface MonthPolicyView {
  /** Of its report series. */
  readonly key: string;
  readonly name: string;
  readonly dimension: Dimension;
  /** Addresses, rule or target that it is about; empty for the global one. */
  readonly subject: string;
  readonly sum: CountersView;
  /** The month before; null: nothing is known of it. */
  readonly before: CountersView | null;
  /** Days with traffic, ascending. */
  readonly days: readonly ReportBucketView[];
}

export interface PoliciesView {
  readonly revision: number;
  readonly config: object;
}

export interface PoliciesChange {
  readonly revision: number;
  readonly config: unknown;
  readonly persist: boolean;
}

export interface CountersView {
  readonly upload: number;
  readonly download: number;
  readonly connections: number;
  readonly exceeded: number;
}

export interface GovernanceView {
  readonly enabled: boolean;
  readonly revision: number;
  readonly lastCheckpoint: number;
  readonly storeBytes: number;
  /** Why the store is not open and nothing is kept; it is tried again. Null: it is open. */
  readonly storeFault: string | null;
  /** The store came back older than what had been acknowledged, and that was not accepted; null: it did not. */
  readonly rollback: Rollback | null;
  readonly uncompressedBytes: number;
  /** By id. */
  readonly policies: readonly PolicyStatusView[];
}

export interface DeviceView {
  /** Empty: none is given. */
  readonly mac: string;
  readonly sourceCidrs: readonly string[];
  /** As it calls itself to a DHCP server; null: that is not known. */
  readonly hostName: string | null;
  /** Those that its hardware address has now, where devices are found by these. */
  readonly addresses: readonly string[];
}

export interface PolicyStatusView {
  readonly id: string;
  readonly name: string;
  readonly dimension: Dimension;
  readonly enabled: boolean;
  readonly uploadBps: number;
  readonly downloadBps: number;
  readonly quota: {
    readonly totalBytes: number;
    readonly uploadBytes: number;
    readonly downloadBytes: number;
    /** 0: no quota. */
    readonly windowSeconds: number;
    readonly overageUploadBps: number;
    readonly overageDownloadBps: number;
    readonly portal: boolean;
  };
  readonly device: DeviceView | null;
  /** `type` in normal form. */
  readonly rule: {
    readonly type: string;
    readonly payload: string;
    readonly target: string;
    readonly fingerprint: string;
  } | null;
  readonly target: { readonly kind: "proxy" | "group"; readonly name: string } | null;
  readonly counters: CountersView;
  /** Bytes inside the quota's window. */
  readonly rolling: { readonly upload: number; readonly download: number };
  readonly activeConnections: number;
  readonly overQuota: boolean;
  /** When a quota that is used up will be free again if nothing more is used; 0: not used up. */
  readonly freeAt: number;
  readonly lastUpdated: number;
  readonly lastReset: number;
  readonly generation: number;
}

export interface RuleSignatureView {
  readonly index: number;
  /** API spelling. */
  readonly type: string;
  readonly payload: string;
  readonly target: string;
  readonly fingerprint: string;
}

export interface ReportQuery {
  readonly key: string;
  readonly granularity: "hour" | "day" | "month";
  readonly from: number;
  readonly to: number;
}

export interface ReportBucketView {
  readonly start: number;
  readonly counters: CountersView;
}
