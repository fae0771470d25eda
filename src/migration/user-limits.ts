/** Quotas, ends and usage as panels have them. */
import type { QuotaCycle, UserLimits } from "#core/users.ts";
import type { StoredUsage } from "#users/allowance.ts";
import { cycleAt } from "#users/cycle.ts";

export interface PanelLimits {
  /** 0: none. */
  readonly totalBytes: number;
  /** When used bytes count no more; null: never. */
  readonly cycle: QuotaCycle | null;
  /** Unix ms; 0: never. */
  readonly expiresAtMs: number;
  /** Source addresses at once; 0: any number. */
  readonly ips: number;
  /** Since the panel's last reset. */
  readonly uploadBytes: number;
  readonly downloadBytes: number;
}

export function userLimits(
  panel: PanelLimits,
  nowMs: number,
): { readonly limits: UserLimits; readonly usage: StoredUsage | null } {
  const { totalBytes, cycle, expiresAtMs, ips, uploadBytes, downloadBytes } = panel;
  const quota =
    totalBytes === 0 ? null : { totalBytes, reset: cycle ?? ("never" as const), windowSeconds: 0 };
  const limits: UserLimits = {
    quota,
    expiresAtMs: expiresAtMs || null,
    uploadBitsPerSecond: 0,
    downloadBitsPerSecond: 0,
    connections: 0,
    ips,
  };
  if (quota === null || cycle === null) return { limits, usage: null };
  const [start] = cycleAt(cycle, Math.floor(nowMs / 1000));
  return { limits, usage: { period: cycle, rows: [[start, uploadBytes, downloadBytes]] } };
}
