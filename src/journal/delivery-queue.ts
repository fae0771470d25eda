/**
 * What one webhook still has to get: for each subject a line, of which only the first is under way. A receiver that fails
 * again and again is asked with one event at a time, less and less often; one that answers again gets the rest at once.
 */
export interface Delivery {
  readonly seq: number;
  readonly subject: string;
  /** When it came, by the clock of the queue; after a day it is given up. */
  sinceMs: number;
  attempts: number;
  error: string;
}

interface Line {
  readonly deliveries: Delivery[];
  nextAtMs: number;
  isBusy: boolean;
}

const GIVE_UP_MS = 24 * 3_600_000;
const FIRST_WAIT_MS = 1_000;
const MOST_WAIT_MS = 600_000;
/** Failures in a row from which the receiver, not an event, is to blame. */
const DOWN_FAILURES = 3;
const MOST_AT_ONCE = 8;
/** Beyond it the oldest are given up. */
const MOST_WAITING = 10_000;

/** After the n-th failure, from 1. */
export function waitMsOf(failures: number): number {
  return Math.min(MOST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(failures - 1, 20));
}

/** Goes by a clock that begins at 0 and is never set. */
export class DeliveryQueue {
  readonly #lines = new Map<string, Line>();
  /** Failures in a row. */
  failures = 0;
  #pausedUntilMs = 0;
  #busy = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Those that have to go to make room. */
  add(delivery: Delivery): readonly Delivery[] {
    const line = this.#lines.get(delivery.subject) ?? { deliveries: [], nextAtMs: 0, isBusy: false };
    line.deliveries.push(delivery);
    this.#lines.set(delivery.subject, line);
    this.#size++;
    return this.#size > MOST_WAITING ? this.#shed() : [];
  }

  /** What may be sent now; each is given back by `done` or `failed`. */
  take(nowMs: number): readonly Delivery[] {
    const isDown = this.failures >= DOWN_FAILURES;
    if (isDown && nowMs < this.#pausedUntilMs) return [];
    const most = isDown ? 1 : MOST_AT_ONCE;
    const taken: Delivery[] = [];
    for (const line of this.#lines.values()) {
      if (this.#busy >= most) break;
      const [first] = line.deliveries;
      if (line.isBusy || first === undefined || (!isDown && line.nextAtMs > nowMs)) continue;
      line.isBusy = true;
      this.#busy++;
      taken.push(first);
    }
    return taken;
  }

  /** When `take` has something again, as far as it depends on time; null: only after `add`, `done`, `failed`. */
  nextAtMs(nowMs: number): number | null {
    if (this.failures >= DOWN_FAILURES)
      return this.#size > 0 && this.#busy === 0 ? this.#pausedUntilMs : null;
    if (this.#busy >= MOST_AT_ONCE) return null;
    let next: number | null = null;
    for (const { isBusy, nextAtMs } of this.#lines.values())
      if (!isBusy) next = Math.min(next ?? Infinity, Math.max(nowMs, nextAtMs));
    return next;
  }

  *sequences(): Generator<number> {
    for (const { deliveries } of this.#lines.values()) for (const { seq } of deliveries) yield seq;
  }

  done(delivery: Delivery): void {
    if (this.failures >= DOWN_FAILURES) for (const line of this.#lines.values()) line.nextAtMs = 0;
    this.failures = 0;
    this.#leave(delivery);
  }

  /** Answers with those that are given up: their day is over. `leastWaitMs`: what the receiver asks for. */
  failed(delivery: Delivery, error: string, nowMs: number, leastWaitMs: number): readonly Delivery[] {
    const line = this.#lines.get(delivery.subject);
    delivery.attempts++;
    delivery.error = error;
    this.failures++;
    this.#pausedUntilMs = nowMs + Math.max(leastWaitMs, waitMsOf(this.failures));
    if (line === undefined) return [];
    line.isBusy = false;
    this.#busy--;
    line.nextAtMs = nowMs + Math.max(leastWaitMs, waitMsOf(delivery.attempts));
    this.#lines.delete(delivery.subject); // others first
    this.#lines.set(delivery.subject, line);
    return this.#overdue(nowMs);
  }

  /** Only those that have been tried, or wait behind one, in a line that is not under way. */
  #overdue(nowMs: number): readonly Delivery[] {
    const given: Delivery[] = [];
    for (const [subject, line] of this.#lines) {
      if (line.isBusy) continue;
      const kept = line.deliveries.filter(({ sinceMs }) => nowMs - sinceMs < GIVE_UP_MS);
      if (kept.length === line.deliveries.length) continue;
      given.push(...line.deliveries.filter(({ sinceMs }) => nowMs - sinceMs >= GIVE_UP_MS));
      this.#replace(subject, line, kept);
    }
    return given;
  }

  #shed(): readonly Delivery[] {
    let oldest: readonly [string, Line] | null = null;
    for (const [subject, line] of this.#lines) {
      const seq = line.deliveries[line.isBusy ? 1 : 0]?.seq ?? Infinity;
      if (seq < (oldest?.[1].deliveries[oldest[1].isBusy ? 1 : 0]?.seq ?? Infinity)) oldest = [subject, line];
    }
    if (oldest === null) return [];
    const [subject, line] = oldest;
    const given = line.deliveries.splice(line.isBusy ? 1 : 0, 1);
    this.#replace(subject, line, line.deliveries, given.length);
    for (const delivery of given) delivery.error ||= "too many events wait";
    return given;
  }

  #leave(delivery: Delivery): void {
    const line = this.#lines.get(delivery.subject);
    if (line === undefined) return;
    line.isBusy = false;
    line.nextAtMs = 0;
    this.#busy--;
    this.#replace(
      delivery.subject,
      line,
      line.deliveries.filter((one) => one !== delivery),
    );
  }

  #replace(
    subject: string,
    line: Line,
    kept: readonly Delivery[],
    gone = line.deliveries.length - kept.length,
  ): void {
    this.#size -= gone;
    this.#lines.delete(subject); // others first
    if (kept.length > 0) this.#lines.set(subject, { ...line, deliveries: [...kept] });
  }
}
