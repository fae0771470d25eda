/** Traffic control: what each policy has counted, and how near its quota is. */
import type { Control } from "#core/control.ts";
import type { GovernanceControl, PolicyStatusView } from "#core/governance.ts";
import { gauges, totals, type MetricRegistry, type Sample } from "./read.ts";

type Label = "policy" | "dimension";
const LABELS: readonly Label[] = ["policy", "dimension"];

export function policyMetrics(registry: MetricRegistry, { governance }: Control): void {
  const each = (read: (policy: PolicyStatusView) => number | null) => () => samples(governance, read);
  totals(registry, {
    name: "weir_policy_upload_bytes_total",
    help: "Bytes from clients that a policy has counted since its last reset",
    labels: LABELS,
    read: each(({ counters }) => counters.upload),
  });
  totals(registry, {
    name: "weir_policy_download_bytes_total",
    help: "Bytes to clients that a policy has counted since its last reset",
    labels: LABELS,
    read: each(({ counters }) => counters.download),
  });
  gauges(registry, {
    name: "weir_policy_connections",
    help: "Open connections of a policy",
    labels: LABELS,
    read: each(({ activeConnections }) => activeConnections),
  });
  gauges(registry, {
    name: "weir_policy_quota_ratio",
    help: "Used share of a policy's quota, the fullest of its caps; absent without a quota",
    labels: LABELS,
    read: each(quotaRatio),
  });
  gauges(registry, {
    name: "weir_store_bytes",
    help: "Size of the file of traffic control on the disk",
    labels: [],
    read: () => (governance.enabled ? [[{}, governance.status().storeBytes]] : []),
  });
  gauges(registry, {
    name: "weir_store_open",
    help: "1 while the store of traffic control is open, 0 while nothing is kept",
    labels: [],
    read: () => (governance.enabled ? [[{}, governance.status().storeFault === null ? 1 : 0]] : []),
  });
  gauges(registry, {
    name: "weir_store_checkpoint_timestamp_seconds",
    help: "When counters were last written to the store",
    labels: [],
    read: () => (governance.enabled ? [[{}, governance.status().lastCheckpoint]] : []),
  });
}

function* samples(
  governance: GovernanceControl,
  read: (policy: PolicyStatusView) => number | null,
): Generator<Sample<Label>> {
  if (!governance.enabled) return;
  for (const policy of governance.status().policies) {
    const value = read(policy);
    if (value !== null) yield [{ policy: policy.id, dimension: policy.dimension }, value];
  }
}

function quotaRatio({ quota, rolling }: PolicyStatusView): number | null {
  if (quota.windowSeconds === 0) return null;
  const shares = [
    [rolling.upload + rolling.download, quota.totalBytes],
    [rolling.upload, quota.uploadBytes],
    [rolling.download, quota.downloadBytes],
  ] as const;
  return Math.max(...shares.map(([used, cap]) => (cap > 0 ? used / cap : 0)));
}
