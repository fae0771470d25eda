/** The running configuration in the keys of the file, so that it can be edited and sent back. */
import { cidrText } from "#net/address/cidr.ts";
import { entriesOf, type BookEntry } from "./policy-book.ts";
import type { GovernanceSettings } from "./settings.ts";

type Document = Readonly<Record<string, unknown>>;

/** Null: the block is absent. Every policy has its id, also where the file gives none: as the status shows it. */
export function documentOf(settings: GovernanceSettings | null): Document {
  if (settings === null) return { enabled: false, portal: {}, reports: {} };
  const { portal, reports } = settings;
  const entries = entriesOf(settings);
  return {
    enabled: settings.enabled,
    ...(settings.deviceIdentity === "address" ? {} : { "device-identity": settings.deviceIdentity }),
    ...(settings.leases.length === 0 ? {} : { leases: settings.leases }),
    store: settings.store,
    "checkpoint-interval": durationText(settings.checkpointIntervalMs),
    "max-store-size": settings.maxStoreSizeBytes,
    portal: {
      ...(portal.listen === null ? {} : { listen: hostPortText(portal.listen) }),
      ...(portal.url === null ? {} : { url: portal.url }),
    },
    reports: {
      enabled: reports.enabled,
      "hourly-retention": durationText(reports.hourlyRetentionMs),
      "daily-retention": durationText(reports.dailyRetentionMs),
      "monthly-retention": durationText(reports.monthlyRetentionMs),
      "orphan-retention": durationText(reports.orphanRetentionMs),
      ...(reports.timeZone === null ? {} : { "time-zone": reports.timeZone }),
    },
    ...Object.fromEntries(documentsOf(entries, "global").map((global) => ["global", global])),
    devices: documentsOf(entries, "device"),
    rules: documentsOf(entries, "rule"),
    targets: documentsOf(entries, "target"),
  };
}

function documentsOf(entries: readonly BookEntry[], dimension: BookEntry["dimension"]): readonly Document[] {
  return entries
    .filter((entry) => entry.dimension === dimension)
    .map((entry) => ({ ...policyDocument(entry), ...subjectDocument(entry) }));
}

/** The keys that only one kind of policy has. */
function subjectDocument(entry: BookEntry): Document {
  if (entry.dimension === "device") {
    const { mac, sourceCidrs } = entry.settings;
    return { ...(mac === null ? {} : { mac }), "source-cidrs": sourceCidrs.map(cidrText) };
  }
  if (entry.dimension === "rule") {
    const { type, payload, target } = entry.settings;
    return { type, payload, target };
  }
  if (entry.dimension === "target") {
    const { kind, target } = entry.settings;
    return { kind, target };
  }
  return {};
}

function policyDocument({ policy, settings }: BookEntry): Document {
  const { name, enabled, uploadBps, downloadBps, quota, portal } = settings;
  return {
    id: policy.id,
    ...(name === "" ? {} : { name }),
    enabled,
    ...given({ "upload-bps": uploadBps, "download-bps": downloadBps }),
    ...(quota === null
      ? {}
      : {
          quota: {
            ...given({
              "total-bytes": quota.totalBytes,
              "upload-bytes": quota.uploadBytes,
              "download-bytes": quota.downloadBytes,
            }),
            ...(quota.windowMs === null ? {} : { window: durationText(quota.windowMs) }),
            ...given({
              "overage-upload-bps": quota.overageUploadBps,
              "overage-download-bps": quota.overageDownloadBps,
            }),
            portal,
          },
        }),
    portal,
  };
}

/** 0 is no limit, and that is what an absent key says. */
function given(amounts: Readonly<Record<string, number>>): Document {
  return Object.fromEntries(Object.entries(amounts).filter(([, value]) => value !== 0));
}

/** Whole days, else whole hours, else minutes. */
function durationText(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes % 1440 === 0) return `${minutes / 1440}d`;
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`;
}

function hostPortText({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
