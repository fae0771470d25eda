import type { DeviceView, PolicyStatusView } from "#core/governance.ts";
import { cidrText } from "#net/address/cidr.ts";
import type { BookEntry } from "./policy-book.ts";
import { freeAt } from "./quota.ts";
import type { PolicyState } from "./policy-state.ts";
import type { DeviceSettings } from "./settings.ts";
import { normalType } from "./signature.ts";

/** Of traffic control that is switched off. */
export const NO_STORE = {
  lastCheckpoint: 0,
  storeBytes: 0,
  storeFault: null,
  rollback: null,
  uncompressedBytes: 0,
} as const;

/** One policy with what it has counted. */
export function statusView(
  entry: BookEntry,
  state: PolicyState,
  about: (device: DeviceSettings) => DeviceNames,
): PolicyStatusView {
  const { policy, settings, enabled } = entry;
  const { counters, window, overQuota, active, generation, lastReset, lastUpdated } = state;
  return {
    id: policy.id,
    name: policy.name,
    dimension: policy.dimension,
    enabled,
    uploadBps: settings.uploadBps,
    downloadBps: settings.downloadBps,
    quota: {
      totalBytes: policy.quota?.totalBytes ?? 0,
      uploadBytes: policy.quota?.uploadBytes ?? 0,
      downloadBytes: policy.quota?.downloadBytes ?? 0,
      windowSeconds: policy.quota?.windowSeconds ?? 0,
      overageUploadBps: policy.quota?.overage.upload ?? 0,
      overageDownloadBps: policy.quota?.overage.download ?? 0,
      portal: policy.portal,
    },
    ...subjectOf(entry, about),
    counters: { ...counters },
    rolling: policy.quota === null || window === null ? NOTHING : rollingOf(window),
    activeConnections: active,
    overQuota,
    freeAt:
      overQuota && policy.quota !== null && window !== null
        ? state.time.wallSecondsAt(freeAt(policy.quota, window))
        : 0,
    lastUpdated,
    lastReset,
    generation,
  };
}

const NOTHING = { upload: 0, download: 0 };

function rollingOf({ upload, download }: { readonly upload: number; readonly download: number }) {
  return { upload, download };
}

export type DeviceNames = Pick<DeviceView, "hostName" | "addresses">;

function subjectOf(
  entry: BookEntry,
  about: (device: DeviceSettings) => DeviceNames,
): Pick<PolicyStatusView, "device" | "rule" | "target"> {
  const none = { device: null, rule: null, target: null };
  if (entry.dimension === "device") {
    const { mac, sourceCidrs } = entry.settings;
    const device = { mac: mac ?? "", sourceCidrs: sourceCidrs.map(cidrText), ...about(entry.settings) };
    return { ...none, device };
  }
  if (entry.dimension === "rule") {
    const { type, payload, target } = entry.settings;
    return { ...none, rule: { type: normalType(type), payload, target, fingerprint: entry.signature } };
  }
  if (entry.dimension === "target") {
    const { kind, target } = entry.settings;
    return { ...none, target: { kind, name: target } };
  }
  return none;
}
