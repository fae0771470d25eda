/** Limits of users, between the names of the admin API and ours. */
import * as z from "zod";
import { amount, unixMs } from "#api/answer-shapes.ts";
import { jsonObject } from "#api/shapes.ts";
import type { ShownIp } from "./by-node.ts";
import {
  QUOTA_CYCLES,
  type LimitsChange,
  type UserDetailView,
  type UserLimits,
  type UserQuota,
  type UserView,
} from "#core/users.ts";

/** A later one is no date: ECMA-262 §21.4.1.1. */
const LAST_MOMENT_MS = 8_640_000_000_000_000;
const limit = (description: string) => z.int().optional().meta({ description, minimum: 0 });

/** 0 takes a limit away. What is no limit (negative, another reset) is refused after the revision was looked at. */
export const limitFields = {
  quota: jsonObject({
    total_bytes: z.int().meta({ description: "Upload and download together; 0: no quota", minimum: 0 }),
    reset: z
      .string()
      .optional()
      .meta({ description: "In UTC; absent: never", enum: ["never", ...QUOTA_CYCLES] }),
    window: z.string().optional().meta({
      description: "Instead of `reset`: what the last `30d` have seen; `1h` to `365d`, m, h, d, w",
    }),
  }).optional(),
  expires_at: z
    .int()
    .optional()
    .meta({ description: "Unix ms; 0: never", minimum: 0, maximum: LAST_MOMENT_MS }),
  upload_bps: limit("bit/s of all sessions together; 0: no limit"),
  download_bps: limit("bit/s of all sessions together; 0: no limit"),
  connection_limit: limit("TCP streams and UDP associations at once; 0: no limit"),
  ip_limit: limit("Source addresses at once; 0: no limit"),
};

const fields = z.object(limitFields);

export function limitsChangeOf({ quota, ...rest }: z.output<typeof fields>): LimitsChange {
  return {
    quota: quota && { totalBytes: quota.total_bytes, reset: quota.reset, window: quota.window },
    expiresAtMs: rest.expires_at,
    uploadBitsPerSecond: rest.upload_bps,
    downloadBitsPerSecond: rest.download_bps,
    connections: rest.connection_limit,
    ips: rest.ip_limit,
  };
}

/** For the document. All are left out where there is no such limit, `status` where there is none at all. */
export const limitAnswers = {
  status: z.enum(["active", "disabled", "expired", "limited"]).optional(),
  quota: z
    .object({
      total_bytes: z.int().positive(),
      reset: z.enum(["never", ...QUOTA_CYCLES]).optional(),
      window: z.string().optional(),
      upload_bytes: amount(),
      download_bytes: amount(),
      used_bytes: amount(),
      resets_at: unixMs().optional(),
    })
    .optional(),
  expires_at: unixMs().optional(),
  upload_bps: amount().optional(),
  download_bps: amount().optional(),
  connection_limit: amount().optional(),
  ip_limit: amount().optional(),
};

export const onlineAnswers = {
  online_ips: z
    .array(
      z.object({
        ip: z.string().min(1),
        connections: amount(),
        last_seen: unixMs(),
        /** By node alone. */
        node: z.string().min(1).optional(),
      }),
    )
    .optional(),
};

/** Empty for a user without limits. */
export function limitsJson(view: UserView): z.output<z.ZodObject<typeof limitAnswers>> {
  const { limits, status } = view;
  if (!isLimited(limits)) return {};
  const { expiresAtMs, uploadBitsPerSecond, downloadBitsPerSecond, connections, ips } = limits;
  return {
    status: status,
    ...quotaJson(view),
    ...(expiresAtMs === null ? {} : { expires_at: expiresAtMs }),
    ...(uploadBitsPerSecond === 0 ? {} : { upload_bps: uploadBitsPerSecond }),
    ...(downloadBitsPerSecond === 0 ? {} : { download_bps: downloadBitsPerSecond }),
    ...(connections === 0 ? {} : { connection_limit: connections }),
    ...(ips === 0 ? {} : { ip_limit: ips }),
  };
}

function quotaJson({ limits: { quota: limit }, quota: used }: UserView) {
  if (limit === null || used === null) return {};
  const { uploadBytes, downloadBytes, resetsAtMs } = used;
  const period = limit.reset === "window" ? { window: windowText(limit) } : { reset: limit.reset };
  return {
    quota: {
      total_bytes: limit.totalBytes,
      ...period,
      upload_bytes: uploadBytes,
      download_bytes: downloadBytes,
      used_bytes: uploadBytes + downloadBytes,
      ...(resetsAtMs === null ? {} : { resets_at: resetsAtMs }),
    },
  };
}

/** Present where the user's addresses are followed: for a limit, or because the request asks for them. */
export function onlineJson({ limits }: UserDetailView, online: readonly ShownIp[], isWanted: boolean) {
  if (!isWanted && !isLimited(limits)) return {};
  return {
    online_ips: online.map(({ ip, connections, lastSeenMs, node }) => ({
      ip,
      connections,
      last_seen: lastSeenMs,
      ...(node === "" ? {} : { node }),
    })),
  };
}

function isLimited({ quota, expiresAtMs, ...counts }: UserLimits): boolean {
  return quota !== null || expiresAtMs !== null || Object.values(counts).some((count) => count > 0);
}

function windowText({ windowSeconds }: UserQuota): string {
  const units = [
    [86_400, "d"],
    [3600, "h"],
    [60, "m"],
  ] as const;
  const [seconds, unit] = units.find(([size]) => windowSeconds % size === 0) ?? [60, "m"];
  return `${windowSeconds / seconds}${unit}`;
}
