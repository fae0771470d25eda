import type { GovernanceView, PolicyStatusView } from "#core/governance.ts";
import { cidrText } from "#net/address/cidr.ts";
import { type DevicesEnv, namesOf } from "./about-devices.ts";
import type { BookEntry } from "./policy-book.ts";
import { freeAt } from "./quota.ts";
import type { PolicyState } from "./policy-state.ts";
import type { ActiveGovernance } from "./running.ts";
import { normalType } from "./signature.ts";

/** Of traffic control that is switched off. */
const NO_STORE = {
  lastCheckpoint: 0,
  storeBytes: 0,
  storeFault: null,
  rollback: null,
  uncompressedBytes: 0,
} as const;

/** `running`: null where it is switched off. */
export function governanceView(
  running: ActiveGovernance | null,
  revision: number,
  devices: DevicesEnv,
): GovernanceView {
  if (running === null) return { enabled: false, revision, ...NO_STORE, policies: [] };
  const { entries, checkpoint, fault, rollback } = running.parts;
  return {
    enabled: true,
    revision,
    lastCheckpoint: checkpoint.lastSeconds,
    storeBytes: checkpoint.storeBytes,
    storeFault: fault,
    rollback,
    uncompressedBytes: checkpoint.uncompressedBytes,
    policies: entries
      .map((entry) => statusView(entry, running.stateOf(entry), devices))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
  };
}

/** One policy with what it has counted. */
function statusView(entry: BookEntry, state: PolicyState, devices: DevicesEnv): PolicyStatusView {
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
    ...subjectOf(entry, devices),
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

function subjectOf(
  entry: BookEntry,
  devices: DevicesEnv,
): Pick<PolicyStatusView, "device" | "rule" | "target"> {
  const none = { device: null, rule: null, target: null };
  if (entry.dimension === "device") {
    const { mac, sourceCidrs } = entry.settings;
    const device = {
      mac: mac ?? "",
      sourceCidrs: sourceCidrs.map(cidrText),
      ...namesOf(entry.settings, devices),
    };
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
