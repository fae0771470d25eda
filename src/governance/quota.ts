/** What a quota's caps make of the usage inside its window. */
import type { QuotaLimits } from "#core/policy.ts";
import type { RollingWindow } from "#lib/rolling-window.ts";

/** Has a cap been reached? Only caps above 0 count. */
export function isOver(
  limits: QuotaLimits,
  { upload, download }: Pick<RollingWindow, "upload" | "download">,
): boolean {
  const { totalBytes, uploadBytes, downloadBytes } = limits;
  return (
    (totalBytes > 0 && upload + download >= totalBytes) ||
    (uploadBytes > 0 && upload >= uploadBytes) ||
    (downloadBytes > 0 && download >= downloadBytes)
  );
}

/** How much may be used until the next cap is reached; negative where one was. */
export function leftBytes(
  { totalBytes, uploadBytes, downloadBytes }: QuotaLimits,
  { upload, download }: Pick<RollingWindow, "upload" | "download">,
): number {
  let left = Number.MAX_SAFE_INTEGER;
  if (totalBytes > 0) left = Math.min(left, totalBytes - upload - download);
  if (uploadBytes > 0) left = Math.min(left, uploadBytes - upload);
  if (downloadBytes > 0) left = Math.min(left, downloadBytes - download);
  return left;
}

/** When the buckets that leave have brought usage below the caps, in seconds of the window's time; 0 where it is below. */
export function freeAt(limits: QuotaLimits, window: RollingWindow): number {
  let { upload, download } = window;
  let at = 0;
  for (const row of window.store()) {
    if (!isOver(limits, { upload, download })) break;
    upload -= row[1];
    download -= row[2];
    at = row[0] + window.widthSeconds + window.windowSeconds;
  }
  return at;
}
