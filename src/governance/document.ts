/** The running configuration in the keys of the file, so that it can be edited and sent back. */
import { cidrText } from "#net/cidr.ts";
import type { GovernanceSettings, PolicySettings } from "./settings.ts";

type Document = Readonly<Record<string, unknown>>;

/** Null: the block is absent. */
export function documentOf(settings: GovernanceSettings | null): Document {
  if (settings === null) return { enabled: false, portal: {}, reports: {} };
  const { portal, reports, global, devices, rules, targets } = settings;
  return {
    enabled: settings.enabled,
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
    ...(global === null ? {} : { global: policyDocument(global) }),
    devices: devices.map((device) => ({
      ...policyDocument(device),
      ...(device.mac === null ? {} : { mac: device.mac }),
      "source-cidrs": device.sourceCidrs.map(cidrText),
    })),
    rules: rules.map((rule) => ({
      ...policyDocument(rule),
      type: rule.type,
      payload: rule.payload,
      target: rule.target,
    })),
    targets: targets.map((target) => ({
      ...policyDocument(target),
      kind: target.kind,
      target: target.target,
    })),
  };
}

function policyDocument({
  id,
  name,
  enabled,
  uploadBps,
  downloadBps,
  quota,
  portal,
}: PolicySettings): Document {
  return {
    ...(id === null ? {} : { id }),
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
export function durationText(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes % 1440 === 0) return `${minutes / 1440}d`;
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`;
}

function hostPortText({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
