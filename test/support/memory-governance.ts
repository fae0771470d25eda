/** Traffic control that is what a test says. */
import { ApiError } from "#core/errors.ts";
import type {
  GovernanceControl,
  GovernanceView,
  MonthReportView,
  PoliciesChange,
  PoliciesView,
  PolicyStatusView,
  ReportBucketView,
  ReportQuery,
  RuleSignatureView,
} from "#core/governance.ts";

export class MemoryGovernance implements GovernanceControl {
  enabled = false;
  revision = 1;
  changes: PoliciesChange[] = [];
  asked: ReportQuery[] = [];
  months: (string | null)[] = [];
  buckets: readonly ReportBucketView[] = [];
  shown: readonly PolicyStatusView[] = [];
  document: object = { enabled: false, portal: {}, reports: {} };
  signatures: readonly RuleSignatureView[] = [];

  nowSeconds(): number {
    return 1_785_312_000;
  }

  status(): GovernanceView {
    const sizes = {
      lastCheckpoint: 0,
      storeBytes: 0,
      storeFault: null,
      rollback: null,
      uncompressedBytes: 0,
    };
    return { enabled: this.enabled, revision: this.revision, ...sizes, policies: this.shown };
  }

  policies(): PoliciesView {
    return { revision: this.revision, config: this.document };
  }

  async replace(change: PoliciesChange): Promise<PoliciesView> {
    if (change.revision !== this.revision) throw new ApiError(409, "stale");
    this.changes.push(change);
    this.revision++;
    return this.policies();
  }

  rules(): readonly RuleSignatureView[] {
    return this.signatures;
  }

  async reset(id: string): Promise<GovernanceView | null> {
    return this.shown.some((policy) => policy.id === id) ? this.status() : null;
  }

  report(query: ReportQuery): readonly ReportBucketView[] {
    this.asked.push(query);
    return this.buckets;
  }

  monthReport(month: string | null): MonthReportView {
    this.months.push(month);
    return { from: 0, to: 2_678_400, timeZone: "UTC", isOver: true, policies: [] };
  }
}

/** One policy of every kind, with and without what may be left out. */
export function busyGovernance(): MemoryGovernance {
  const governance = new MemoryGovernance();
  const counters = { upload: 5, download: 6, connections: 2, exceeded: 1 };
  const limits = { totalBytes: 7, uploadBytes: 0, downloadBytes: 0, windowSeconds: 365 * 86_400 };
  const quota = { ...limits, overageUploadBps: 1, overageDownloadBps: 0, portal: true };
  const common = { enabled: true, uploadBps: 0, downloadBps: 9, quota, counters };
  const times = { freeAt: 0, lastUpdated: 1, lastReset: 2, generation: 1 };
  const now = { rolling: { upload: 1, download: 0 }, activeConnections: 2, overQuota: false, ...times };
  const none = { name: "", device: null, rule: null, target: null };
  const fingerprint = "0".repeat(64);
  governance.shown = [
    { id: "1", dimension: "global", ...common, ...now, ...none },
    {
      id: "2",
      dimension: "device",
      ...common,
      ...now,
      ...none,
      device: { mac: "", sourceCidrs: ["::/0"], hostName: null, addresses: [] },
    },
    {
      id: "3",
      dimension: "rule",
      ...common,
      ...now,
      ...none,
      rule: { type: "MATCH", payload: "", target: "DIRECT", fingerprint },
    },
    { id: "4", dimension: "target", ...common, ...now, ...none, target: { kind: "group", name: "Proxy" } },
  ];
  governance.signatures = [{ index: 0, type: "Match", payload: "", target: "DIRECT", fingerprint }];
  governance.buckets = [{ start: 1_785_308_400, counters }];
  return governance;
}
