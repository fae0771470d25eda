/** When a certificate is ordered, and how long failures are waited for. */
import type { KeptCertificate } from "./our-files.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/**
 * Let's Encrypt counts five failed validations of a name within an hour (https://letsencrypt.org/docs/rate-limits/):
 * behind the first failure 5 minutes, then twice as long each time, up to a day.
 */
const FIRST_WAIT_MS = 5 * MINUTE_MS;
const LONGEST_WAIT_MS = DAY_MS;
/** Of the life of a certificate; many machines that were set up at one time must not renew at one time. */
const RENEWED_AT = 2 / 3;
const SPREAD = 1 / 30;

export function renewalDueMs({ fromMs, untilMs, standsIn, spread }: KeptCertificate): number {
  if (standsIn) return 0;
  const lifeMs = untilMs - fromMs;
  return Math.round(fromMs + lifeMs * (RENEWED_AT - SPREAD * spread));
}

/** Behind the `failures`-th failure in a row. `askedMs`: what the authority asked to wait. */
export function waitBehindMs(failures: number, askedMs: number, random: number): number {
  const waitMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(failures - 1, 20), LONGEST_WAIT_MS);
  return Math.round(Math.max(waitMs, Math.min(askedMs, 7 * DAY_MS)) * (1 + random / 5));
}

/** Files and clocks change meanwhile, so nothing is waited for longer than this without another look. */
export const LOOK_MS = 6 * HOUR_MS;
