/**
 * THE arithmetic of every speed limit: governance, users and the worker threads of a relay all reckon with it.
 *
 * A bucket is one number: the time until which all that was taken is paid for. Before it the bucket is in debt; a
 * whole burst after it the bucket is full. So a bucket fits one word of memory, and a thread that shares one needs
 * nothing but compare-and-exchange around `paidUntil`. Times are ms of a clock that never goes back; any origin will
 * do, and where whole numbers are wanted any unit, as long as the rate has the same one.
 */
export interface Rate {
  readonly bytesPerMs: number;
  /** What a full bucket grants at once. */
  readonly burstBytes: number;
  /** The same in time. */
  readonly burstMs: number;
}

const BURST_MS = 40;
const MIN_BURST_BYTES = 1500;
const MAX_BURST_BYTES = 4 * 1024 * 1024;
/** The gate in parts of the rate and of the burst: 1.11 × 100 ms + 35 ms = 146 ms of the rate. */
const GATE_FACTOR = 1.11;
const GATE_BURST = 35 / BURST_MS;
/** Timers are no finer; a smaller debt is kept and paid with the next piece. */
const SHORTEST_HOLD_MS = 1;

/** `bitsPerSecond` above 0; below a byte a second it is a byte a second. */
export function rateOf(bitsPerSecond: number): Rate {
  const bytesPerMs = Math.max(1, Math.floor(bitsPerSecond / 8)) / 1000;
  const burstBytes = Math.min(MAX_BURST_BYTES, Math.max(MIN_BURST_BYTES, bytesPerMs * BURST_MS));
  return { bytesPerMs, burstBytes, burstMs: burstBytes / bytesPerMs };
}

/**
 * A second bucket for what goes out: it keeps the fullest 100 ms below 1.5 times the rate, and lets what late timers have
 * kept back follow at a tenth above the rate.
 */
export function gateOf({ bytesPerMs, burstBytes }: Rate): Rate {
  const fasterBytesPerMs = bytesPerMs * GATE_FACTOR;
  const gateBytes = Math.max(MIN_BURST_BYTES, burstBytes * GATE_BURST);
  return { bytesPerMs: fasterBytesPerMs, burstBytes: gateBytes, burstMs: gateBytes / fasterBytesPerMs };
}

/** A bucket that is full now. */
export function fullAt({ burstMs }: Rate, nowMs: number): number {
  return nowMs - burstMs;
}

/**
 * The bucket after these bytes; negative bytes were paid for and never went out. What was left over longer than
 * `memoryMs` ago is forgotten: by default what does not fit the burst.
 */
export function paidUntil(
  rate: Rate,
  untilMs: number,
  nowMs: number,
  bytes: number,
  memoryMs = rate.burstMs,
): number {
  return Math.max(untilMs, nowMs - memoryMs) + bytes / rate.bytesPerMs;
}

/** How long a stream holds the piece that it has just paid for; 0: not at all. */
export function holdMsOf(untilMs: number, nowMs: number): number {
  const debtMs = untilMs - nowMs;
  return debtMs < SHORTEST_HOLD_MS ? 0 : debtMs;
}

/** How long until a piece finds enough in the bucket, or until the bucket is full; 0: now. */
export function shortMsOf(rate: Rate, untilMs: number, nowMs: number, bytes: number): number {
  return holdMsOf(
    Math.max(untilMs, nowMs - rate.burstMs) + Math.min(bytes, rate.burstBytes) / rate.bytesPerMs,
    nowMs,
  );
}

/** May a datagram pass without waiting? A full bucket lets one larger than itself pass and goes into debt. */
export function grantsNow(rate: Rate, untilMs: number, nowMs: number, bytes: number): boolean {
  const tokens = Math.min(rate.burstMs, nowMs - untilMs) * rate.bytesPerMs;
  return tokens >= Math.min(bytes, rate.burstBytes);
}
