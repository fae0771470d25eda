/** Traffic control that is what a test says. */
import { ApiError } from "#core/errors.ts";
import type {
  GovernanceControl,
  GovernanceView,
  PoliciesChange,
  PoliciesView,
  PolicyStatusView,
  ReportBucketView,
  ReportQuery,
} from "#core/governance.ts";

export class MemoryGovernance implements GovernanceControl {
  enabled = false;
  revision = 1;
  changes: PoliciesChange[] = [];
  asked: ReportQuery[] = [];
  buckets: readonly ReportBucketView[] = [];
  shown: readonly PolicyStatusView[] = [];

  nowSeconds(): number {
    return 1_785_312_000;
  }

  status(): GovernanceView {
    const sizes = { lastCheckpoint: 0, storeBytes: 0, uncompressedBytes: 0 };
    return { enabled: this.enabled, revision: this.revision, ...sizes, policies: this.shown };
  }

  policies(): PoliciesView {
    return { revision: this.revision, config: { enabled: this.enabled } };
  }

  async replace(change: PoliciesChange): Promise<PoliciesView> {
    if (change.revision !== this.revision) throw new ApiError(409, "stale");
    this.changes.push(change);
    this.revision++;
    return this.policies();
  }

  rules() {
    return [];
  }

  reset(id: string): PolicyStatusView | null {
    return this.shown.find((policy) => policy.id === id) ?? null;
  }

  report(query: ReportQuery): readonly ReportBucketView[] {
    this.asked.push(query);
    return this.buckets;
  }
}
