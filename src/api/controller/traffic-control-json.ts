/** Names of the status and the reports: snake_case here, unlike the configuration. */
import type {
  CountersView,
  GovernanceView,
  PolicyStatusView,
  ReportBucketView,
  ReportQuery,
} from "#core/governance.ts";

import type { Rollback } from "#core/rollback.ts";

const NANOSECONDS = 1_000_000_000;

export function statusJson(view: GovernanceView) {
  return {
    enabled: view.enabled,
    revision: view.revision,
    last_checkpoint: view.lastCheckpoint,
    store_bytes: view.storeBytes,
    uncompressed_bytes: view.uncompressedBytes,
    ...(view.storeFault === null ? {} : { store_error: view.storeFault }),
    ...rollbackJson(view.rollback),
    policies: view.policies.map(policyJson),
  };
}

function rollbackJson(rollback: Rollback | null) {
  if (rollback === null) return {};
  const { seenGeneration, foundGeneration, sinceMs } = rollback;
  const since = Math.trunc(sinceMs / 1000);
  return { rollback: { seen_generation: seenGeneration, found_generation: foundGeneration, since } };
}

function policyJson(view: PolicyStatusView) {
  return {
    policy: {
      id: view.id,
      ...(view.name === "" ? {} : { name: view.name }),
      kind: view.dimension,
      enabled: view.enabled,
      ...given({ upload_bps: view.uploadBps, download_bps: view.downloadBps }),
      quota: quotaJson(view.quota),
      ...deviceJson(view.device),
      rule: view.rule ?? {},
      target: view.target ?? {},
    },
    counters: countersJson(view.counters),
    rolling: countersJson({ ...view.rolling, connections: 0, exceeded: 0 }),
    active_connections: view.activeConnections,
    over_quota: view.overQuota,
    last_updated: view.lastUpdated,
    last_reset: view.lastReset,
    generation: view.generation,
  };
}

function quotaJson(quota: PolicyStatusView["quota"]) {
  return {
    ...given({
      total_bytes: quota.totalBytes,
      upload_bytes: quota.uploadBytes,
      download_bytes: quota.downloadBytes,
      window: quota.windowSeconds * NANOSECONDS,
      window_seconds: quota.windowSeconds,
      overage_upload_bps: quota.overageUploadBps,
      overage_download_bps: quota.overageDownloadBps,
    }),
    portal: quota.portal,
  };
}

function deviceJson(device: PolicyStatusView["device"]) {
  if (device === null) return {};
  const { mac, sourceCidrs, hostName, addresses } = device;
  return {
    ...(mac === "" ? {} : { mac }),
    source_cidrs: sourceCidrs,
    ...(hostName === null ? {} : { host_name: hostName }),
    ...(addresses.length === 0 ? {} : { addresses }),
  };
}

/** 0 is no limit and is left out. */
function given(amounts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(amounts).filter(([, value]) => value !== 0));
}

export function countersJson({ upload, download, connections, exceeded }: CountersView) {
  return { upload_bytes: upload, download_bytes: download, connections, exceeded_events: exceeded };
}

const HEADER = "key,granularity,start,upload_bytes,download_bytes,connections,exceeded_events";

/** RFC 4180 with line feeds: a field is quoted only where it must be. */
export function reportCsv({ key, granularity }: ReportQuery, buckets: readonly ReportBucketView[]): string {
  const lines = buckets.map(({ start, counters: { upload, download, connections, exceeded } }) =>
    [key, granularity, start, upload, download, connections, exceeded].map(csvField).join(","),
  );
  return [HEADER, ...lines].map((line) => `${line}\n`).join("");
}

/** One object a line, as the document of the series has them, each with key and granularity. */
export function reportNdjson(
  { key, granularity }: ReportQuery,
  buckets: readonly ReportBucketView[],
): string {
  return buckets
    .map(
      ({ start, counters }) => `${JSON.stringify({ key, granularity, start, ...countersJson(counters) })}\n`,
    )
    .join("");
}

function csvField(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
