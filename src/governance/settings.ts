/** The configuration of traffic control as this folder reads it; the parsed block of the file has this shape. */
import type { Cidr } from "#net/address/cidr.ts";

export interface QuotaSettings {
  readonly totalBytes: number;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  readonly windowMs: number | null;
  readonly overageUploadBps: number;
  readonly overageDownloadBps: number;
}

export interface PolicySettings {
  /** Null: made from what the policy is about. */
  readonly id: string | null;
  readonly name: string;
  readonly enabled: boolean;
  readonly uploadBps: number;
  readonly downloadBps: number;
  readonly quota: QuotaSettings | null;
  readonly portal: boolean;
}

export interface DeviceSettings extends PolicySettings {
  readonly mac: string | null;
  readonly sourceCidrs: readonly Cidr[];
}

export interface RuleSettings extends PolicySettings {
  readonly type: string;
  readonly payload: string;
  readonly target: string;
}

export interface TargetSettings extends PolicySettings {
  readonly kind: "proxy" | "group";
  readonly target: string;
}

export interface ReportSettings {
  readonly enabled: boolean;
  readonly hourlyRetentionMs: number;
  readonly dailyRetentionMs: number;
  readonly monthlyRetentionMs: number;
  readonly orphanRetentionMs: number;
  /** Null: UTC. */
  readonly timeZone: string | null;
}

export interface PolicyLists {
  readonly global: PolicySettings | null;
  readonly devices: readonly DeviceSettings[];
  readonly rules: readonly RuleSettings[];
  readonly targets: readonly TargetSettings[];
}

export interface GovernanceSettings extends PolicyLists {
  readonly enabled: boolean;
  /** Whether the hardware address of a device only names it, or finds it among the neighbours, too. */
  readonly deviceIdentity: "address" | "neighbour";
  /** Files of DHCP servers, as written: they say how devices call themselves. */
  readonly leases: readonly string[];
  /** As written. */
  readonly store: string;
  readonly checkpointIntervalMs: number;
  readonly maxStoreSizeBytes: number;
  readonly portal: {
    readonly listen: { readonly host: string; readonly port: number } | null;
    readonly url: string | null;
  };
  readonly reports: ReportSettings;
}
