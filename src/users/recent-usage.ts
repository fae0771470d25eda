/** What one user has moved lately, in steps of five minutes: for people to look at, in memory only. */
import type { Direction } from "#core/meter.ts";
import type { UsageStep } from "#core/users.ts";

export const STEP_SECONDS = 300;
/** A day: 7 KB for a user with traffic in every step. Beyond it the oldest step is dropped. */
const MOST_STEPS = 288;

interface Step {
  readonly startSeconds: number;
  upload: number;
  download: number;
}

/** Steps in which nothing was moved are left out, so a silent user costs nothing. */
export class RecentUsage {
  readonly #steps: Step[] = [];

  /** `bytes` is negative for what was counted and never went out. Allocates once a step. */
  count(direction: Direction, bytes: number, wallMs: number): void {
    const startSeconds = Math.floor(wallMs / 1000 / STEP_SECONDS) * STEP_SECONDS;
    let step = this.#steps.at(-1);
    // A clock that was set back counts on in the newest step.
    if (step === undefined || step.startSeconds < startSeconds) {
      if (bytes <= 0) return; // a correction of what was counted a step ago
      step = { startSeconds, upload: 0, download: 0 };
      this.#steps.push(step);
      if (this.#steps.length > MOST_STEPS) this.#steps.shift();
    }
    step[direction] = Math.max(0, step[direction] + bytes);
  }

  /** Of the last day, oldest first. */
  shown(wallMs: number): readonly UsageStep[] {
    const fromSeconds = wallMs / 1000 - MOST_STEPS * STEP_SECONDS;
    return this.#steps
      .filter(({ startSeconds }) => startSeconds > fromSeconds)
      .map(({ startSeconds, upload, download }) => ({
        startSeconds,
        uploadBytes: upload,
        downloadBytes: download,
      }));
  }
}
