/** The limits of one user at work: the buckets that all sessions share, and what was used of the quota. */
import type { Direction } from "#core/meter.ts";
import { RollingWindow, type StoredWindow } from "#lib/rolling-window.ts";
import type { StoredMoment, SteadyTime } from "#lib/steady-time.ts";
import { TokenBucket } from "#lib/token-bucket.ts";
import type { QuotaView, UserLimits, UserQuota } from "#core/users.ts";
import { CycleUsage } from "./cycle.ts";

/** What is stored of a quota. `period` says what the rows are; of another period they are not taken over. */
export interface StoredUsage {
  readonly period: string;
  /** Start in Unix seconds, upload and download bytes. */
  readonly rows: StoredWindow;
  /** Of a window: when its rows were encoded, by the clock of the rows. */
  readonly moment?: StoredMoment | undefined;
}

/** Steps of a user's window: coarser than a policy's, because there may be thousands. */
const WINDOW_PARTS = 128;

interface Used {
  readonly uploadBytes: number;
  readonly downloadBytes: number;
}

export class Allowance {
  readonly limits: UserLimits;
  readonly upload: TokenBucket | null;
  readonly download: TokenBucket | null;
  readonly #usage: CycleUsage | RollingWindow | null;
  readonly #time: SteadyTime;

  /** `nowMs` never goes back; windows go by `time`. Buckets of `before` are taken over where they stay the same. */
  constructor(
    limits: UserLimits,
    nowMs: number,
    time: SteadyTime,
    stored: StoredUsage | null,
    before: Allowance | null = null,
  ) {
    this.#time = time;
    this.limits = limits;
    const { uploadBitsPerSecond, downloadBitsPerSecond, quota } = limits;
    const old = before?.limits;
    this.upload =
      uploadBitsPerSecond === old?.uploadBitsPerSecond
        ? (before?.upload ?? null)
        : bucketOf(uploadBitsPerSecond, nowMs);
    this.download =
      downloadBitsPerSecond === old?.downloadBitsPerSecond
        ? (before?.download ?? null)
        : bucketOf(downloadBitsPerSecond, nowMs);
    this.#usage = quota === null ? null : usageOf(quota, stored);
  }

  /** `bytes` is negative for what was counted and never went out. */
  count(direction: Direction, bytes: number, wallMs: number): void {
    const usage = this.#usage;
    if (usage instanceof CycleUsage) usage.add(direction, bytes, Math.floor(wallMs / 1000));
    else if (usage !== null) {
      const isUpload = direction === "upload";
      usage.add(this.#time.nowSeconds(), isUpload ? bytes : 0, isUpload ? 0 : bytes);
    }
  }

  /** Null without a quota. `counters` are the user's own, which a quota without periods goes by. */
  used(counters: Used, wallMs: number): QuotaView | null {
    if (this.limits.quota === null) return null;
    const usage = this.#usage;
    if (usage === null) {
      const { uploadBytes, downloadBytes } = counters;
      return { uploadBytes, downloadBytes, resetsAtMs: null };
    }
    if (usage instanceof CycleUsage) {
      const nowSeconds = Math.floor(wallMs / 1000);
      const { upload, download } = usage.at(nowSeconds);
      return {
        uploadBytes: upload,
        downloadBytes: download,
        resetsAtMs: usage.endAt(nowSeconds) * 1000,
      };
    }
    usage.expire(this.#time.nowSeconds());
    return { uploadBytes: usage.upload, downloadBytes: usage.download, resetsAtMs: null };
  }

  /** What may be moved until the quota is used up; 0 or less: it is. Allocates nothing. */
  leftBytes({ uploadBytes, downloadBytes }: Used, wallMs: number): number {
    const { quota } = this.limits;
    if (quota === null) return Number.MAX_SAFE_INTEGER;
    const usage = this.#usage;
    if (usage === null) return quota.totalBytes - uploadBytes - downloadBytes;
    if (usage instanceof RollingWindow) usage.expire(this.#time.nowSeconds());
    const { upload, download } = usage instanceof RollingWindow ? usage : usage.at(Math.floor(wallMs / 1000));
    return quota.totalBytes - upload - download;
  }

  store(): StoredUsage | null {
    const { quota } = this.limits;
    const usage = this.#usage;
    if (quota === null || usage === null) return null;
    const stored = { period: periodOf(quota), rows: usage.store() };
    return usage instanceof RollingWindow ? { ...stored, moment: this.#time.moment() } : stored;
  }
}

function bucketOf(bitsPerSecond: number, nowMs: number): TokenBucket | null {
  return bitsPerSecond > 0 ? new TokenBucket(bitsPerSecond, nowMs) : null;
}

/** Are the rows those of a window, not of cycles? */
export function isWindow({ period }: StoredUsage): boolean {
  return period.endsWith("s");
}

function periodOf({ reset, windowSeconds }: UserQuota): string {
  return reset === "window" ? `${windowSeconds}s` : reset;
}

function usageOf(quota: UserQuota, stored: StoredUsage | null): CycleUsage | RollingWindow | null {
  const rows = stored?.period === periodOf(quota) ? stored.rows : [];
  if (quota.reset === "never") return null;
  if (quota.reset === "window") return new RollingWindow(quota.windowSeconds, rows, WINDOW_PARTS);
  return new CycleUsage(quota.reset, rows);
}
