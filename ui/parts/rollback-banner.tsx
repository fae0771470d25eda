import type { Rollback } from "#ui/api/types.ts";
import { countText, durationText } from "#ui/format.ts";

/** `lost`: what is as it was then. `setting`: the key that names the store. `sinceMs`: Unix time. */
export function RollbackBanner({
  rollback,
  sinceMs,
  setting,
  lost,
}: {
  readonly rollback: Rollback;
  readonly sinceMs: number;
  readonly setting: string;
  readonly lost: string;
}) {
  const found = countText(rollback.found_generation);
  const seen = countText(rollback.seen_generation);
  return (
    <div class="banner" role="alert">
      <p>
        <strong>State has gone back.</strong> {durationText(Date.now() - sinceMs)} ago the store was at
        generation {found}, and {seen} had been written: an older copy has taken its place. {lost}
      </p>
      <p>
        Check what is here. If it is meant, stop weir, run <code>weir accept-rollback</code> with the file of{" "}
        <code>{setting}</code>, and start it again. If not, stop weir and put the newer files back.
      </p>
    </div>
  );
}
