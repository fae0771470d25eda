/** What a user may have, checked. */
import { ApiError } from "#core/errors.ts";
import { QUOTA_CYCLES, type LimitsChange, type UserLimits, type UserQuota } from "#core/users.ts";

export const NO_LIMITS: UserLimits = {
  quota: null,
  expiresAtMs: null,
  uploadBitsPerSecond: 0,
  downloadBitsPerSecond: 0,
  connections: 0,
  ips: 0,
};

/** A later one is no date: ECMA-262 §21.4.1.1. For never there is 0. */
export const LAST_MOMENT_MS = 8_640_000_000_000_000;

export const QUOTA_RESETS: readonly UserQuota["reset"][] = ["never", ...QUOTA_CYCLES, "window"];

const SECONDS = { m: 60, h: 3600, d: 86_400, w: 604_800 } as const;
const SHORTEST_WINDOW_SECONDS = SECONDS.h;
const LONGEST_WINDOW_SECONDS = 365 * SECONDS.d;

/** Is there a limit that can block the user? */
export function canBar({ quota, expiresAtMs }: UserLimits): boolean {
  return quota !== null || expiresAtMs !== null;
}

/** What the change does not name stays. Throws `ApiError` 400. */
export function changedLimits(before: UserLimits, change: LimitsChange | undefined): UserLimits {
  if (change === undefined || Object.values(change).every((one) => one === undefined)) return before;
  const { quota, expiresAtMs } = change;
  const next = {
    quota: quota === undefined ? before.quota : checkedQuota(quota),
    expiresAtMs:
      expiresAtMs === undefined
        ? before.expiresAtMs
        : checkedCount("expires_at", expiresAtMs, LAST_MOMENT_MS) || null,
    uploadBitsPerSecond: checkedCount("upload_bps", change.uploadBitsPerSecond ?? before.uploadBitsPerSecond),
    downloadBitsPerSecond: checkedCount(
      "download_bps",
      change.downloadBitsPerSecond ?? before.downloadBitsPerSecond,
    ),
    connections: checkedCount("connection_limit", change.connections ?? before.connections),
    ips: checkedCount("ip_limit", change.ips ?? before.ips),
  };
  return hasAny(next) ? next : NO_LIMITS;
}

function hasAny(limits: UserLimits): boolean {
  const { uploadBitsPerSecond, downloadBitsPerSecond, connections, ips } = limits;
  return canBar(limits) || uploadBitsPerSecond + downloadBitsPerSecond + connections + ips > 0;
}

function checkedCount(field: string, value: number, most = Number.MAX_SAFE_INTEGER): number {
  if (Number.isSafeInteger(value) && value >= 0 && value <= most) return value;
  throw new ApiError(400, `${field}: expected a whole number from 0 to ${most}`);
}

function checkedQuota({ totalBytes, reset, window }: NonNullable<LimitsChange["quota"]>): UserQuota | null {
  checkedCount("quota.total_bytes", totalBytes);
  const cycle = (["never", ...QUOTA_CYCLES] as const).find((one) => one === (reset ?? "never"));
  if (cycle === undefined)
    throw new ApiError(400, `quota.reset: expected never, ${QUOTA_CYCLES.join(", ")}, or a window instead`);
  if (window !== undefined && reset !== undefined)
    throw new ApiError(400, "quota: reset and window exclude each other");
  const windowSeconds = window === undefined ? 0 : secondsOf(window);
  if (totalBytes === 0) return null;
  return {
    totalBytes,
    reset: window === undefined ? cycle : "window",
    windowSeconds,
  };
}

function secondsOf(window: string): number {
  const [, count = "", unit = ""] = /^(\d{1,6})([mhdw])$/.exec(window) ?? [];
  const seconds = Number(count) * (SECONDS[unit as keyof typeof SECONDS] ?? 0);
  if (seconds >= SHORTEST_WINDOW_SECONDS && seconds <= LONGEST_WINDOW_SECONDS) return seconds;
  throw new ApiError(400, "quota.window: expected 1h to 365d, as a whole number with m, h, d or w");
}

export function isSameQuota(a: UserQuota, b: UserQuota | null | undefined): boolean {
  return a.totalBytes === b?.totalBytes && a.reset === b.reset && a.windowSeconds === b.windowSeconds;
}
