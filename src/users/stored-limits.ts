/** Limits in the state file and in exported documents, by the names of the API. */
import * as z from "zod";
import { StoreError } from "#core/errors.ts";
import type { UserLimits } from "#core/users.ts";
import type { StoredUsage } from "./allowance.ts";
import { LAST_MOMENT_MS, NO_LIMITS, QUOTA_RESETS } from "./limits.ts";

const count = () => z.int().nonnegative();

/** What is 0 or missing is no limit. */
export const storedLimits = z.object({
  quota: z
    .object({ total_bytes: z.int().positive(), reset: z.enum(QUOTA_RESETS), window_seconds: count() })
    .refine(({ reset, window_seconds }) => (reset === "window") === window_seconds > 0)
    .optional(),
  quota_usage: z
    .object({
      period: z.string(),
      rows: z.array(z.tuple([z.int(), z.int(), z.int()])),
      moment: z.tuple([z.int(), z.int(), z.string(), z.int()]).optional(),
    })
    .optional(),
  expires_at: count().optional(),
  upload_bps: count().optional(),
  download_bps: count().optional(),
  connection_limit: count().optional(),
  ip_limit: count().optional(),
});

export type StoredLimits = z.output<typeof storedLimits>;

/** Empty for a user without limits. */
export function limitsJson(limits: UserLimits, usage: StoredUsage | null): StoredLimits {
  if (limits === NO_LIMITS) return {};
  const { quota, expiresAtMs, uploadBitsPerSecond, downloadBitsPerSecond, connections, ips } = limits;
  return {
    ...(quota === null
      ? {}
      : {
          quota: {
            total_bytes: quota.totalBytes,
            reset: quota.reset,
            window_seconds: quota.windowSeconds,
          },
        }),
    ...(usage === null ? {} : { quota_usage: usageJson(usage) }),
    ...(expiresAtMs === null ? {} : { expires_at: expiresAtMs }),
    ...(uploadBitsPerSecond === 0 ? {} : { upload_bps: uploadBitsPerSecond }),
    ...(downloadBitsPerSecond === 0 ? {} : { download_bps: downloadBitsPerSecond }),
    ...(connections === 0 ? {} : { connection_limit: connections }),
    ...(ips === 0 ? {} : { ip_limit: ips }),
  };
}

function usageJson({ period, rows, moment }: StoredUsage) {
  return {
    period,
    rows: rows.map((row): [number, number, number] => [...row]),
    ...(moment === undefined ? {} : { moment: [...moment] satisfies [number, number, string, number] }),
  };
}

/** Throws `StoreError` where they contradict themselves. */
export function limitsOf(stored: StoredLimits | undefined): {
  readonly limits: UserLimits;
  readonly usage: StoredUsage | null;
} {
  if (stored === undefined || Object.keys(stored).length === 0) return { limits: NO_LIMITS, usage: null };
  const read = storedLimits.safeParse(stored);
  if (!read.success) throw new StoreError(`limits: ${read.error.issues[0]?.path.join(".")} is not sound`);
  const { quota, quota_usage: usage = null, expires_at, ...rest } = read.data;
  const limits: UserLimits = {
    quota:
      quota === undefined
        ? null
        : { totalBytes: quota.total_bytes, reset: quota.reset, windowSeconds: quota.window_seconds },
    expiresAtMs: Math.min(expires_at ?? 0, LAST_MOMENT_MS) || null, // earlier versions took what is no date
    uploadBitsPerSecond: rest.upload_bps ?? 0,
    downloadBitsPerSecond: rest.download_bps ?? 0,
    connections: rest.connection_limit ?? 0,
    ips: rest.ip_limit ?? 0,
  };
  return { limits, usage };
}
