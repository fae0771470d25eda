/**
 * BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), with the profiles that hysteria2 names: it models the way by
 * its greatest delivery rate and its least round trip time.
 */
import type { AckSample, Congestion } from "./congestion.ts";
import { WindowedMax } from "./windowed-max.ts";

const BBR_PROFILES = {
  conservative: { highGain: 2.25, highWindowGain: 1.75, windowGain: 1.75, startupRounds: 2 },
  standard: { highGain: 2.885, highWindowGain: 2, windowGain: 2, startupRounds: 3 },
  aggressive: { highGain: 3, highWindowGain: 2.25, windowGain: 2.5, startupRounds: 4 },
} as const;
export type BbrProfile = keyof typeof BBR_PROFILES;

const CYCLE = [1.25, 0.75, 1, 1, 1, 1, 1, 1] as const;
const RATE_ROUNDS = 10;
const MIN_RTT_EXPIRY_MS = 10_000;
const PROBE_RTT_MS = 200;
const LEAST_PACKETS = 4;
const FIRST_PACKETS = 32;
/** Timers know milliseconds: so much is sent at once, and acknowledged at once. */
const QUANTUM_MS = 1;
const MOST_QUANTUM_BYTES = 64 * 1024;
/** Of them beyond what the way holds: one is with the sender, one on the way, one with the receiver. */
const QUANTA = 3;
const STARTUP_GROWTH = 1.25;
/** In a round of startup: so many losses, of so much of what was in flight, end it. */
const STARTUP_LOSSES = 8;
const STARTUP_LOST_SHARE = 0.02;
/** Before the first sample. */
const ASSUMED_RTT_MS = 100;
const LEAST_RATE = 65_536 / 1000;

type State = "startup" | "drain" | "probe-rate" | "probe-rtt";
/**
 * Behind a loss, for a round, as much is sent as is acknowledged. Where rounds with losses follow each other, the way loses by
 * chance, and the window grows again; a round without any ends it.
 */
type Recovery = "none" | "begins" | "conserves" | "grows";

export class Bbr implements Congestion {
  readonly #profile: (typeof BBR_PROFILES)[BbrProfile];
  readonly #rate = new WindowedMax(RATE_ROUNDS);
  #state: State = "startup";
  #datagramBytes = 1200;
  #window = FIRST_PACKETS * 1200;
  #round = 0;
  #roundEnds = 0;
  #minRttMs = Infinity;
  #minRttAtMs = 0;
  #fullRate = 0;
  #fullRounds = 0;
  #isPipeFull = false;
  #losses = 0;
  #lostBytes = 0;
  #cycle = 0;
  #cycleAtMs = 0;
  #probeRttUntilMs = 0;
  #probeRttRound = 0;
  #recovery: Recovery = "none";
  #lastLossRound = -1;
  /** Since the last acknowledgement. */
  #lostSinceAck = 0;
  /** The most that came in one burst above the rate. */
  readonly #aggregated = new WindowedMax(RATE_ROUNDS);
  #burstAtMs = 0;
  #burstBytes = 0;

  constructor(profile: BbrProfile = "standard") {
    this.#profile = BBR_PROFILES[profile];
  }

  get windowBytes(): number {
    if (this.#state === "probe-rtt") return LEAST_PACKETS * this.#datagramBytes;
    return this.#window;
  }

  get pacingRate(): number {
    const { highGain } = this.#profile;
    const rate = this.#rate.value;
    if (rate === 0) {
      const rttMs = Number.isFinite(this.#minRttMs) ? Math.max(this.#minRttMs, 0.1) : ASSUMED_RTT_MS;
      return Math.max(LEAST_RATE, (highGain * FIRST_PACKETS * this.#datagramBytes) / rttMs);
    }
    return Math.max(LEAST_RATE, this.#pacingGain() * rate);
  }

  #pacingGain(): number {
    if (this.#state === "startup") return this.#profile.highGain;
    if (this.#state === "drain") return 1 / this.#profile.highGain;
    return this.#state === "probe-rtt" ? 1 : (CYCLE[this.#cycle] ?? 1);
  }

  onSent(): void {}

  onLost(_nowMs: number, bytes: number, _newestSentAtMs: number, isPersistent: boolean): void {
    this.#losses++;
    this.#lostBytes += bytes;
    this.#lostSinceAck += bytes;
    this.#lastLossRound = this.#round;
    if (this.#recovery === "none" && this.#isPipeFull) this.#recovery = "begins";
    if (isPersistent) this.#window = LEAST_PACKETS * this.#datagramBytes;
  }

  /** As a loss of nothing, once a round: behind it as much is sent as is acknowledged, for a round. */
  onMarked(nowMs: number, newestSentAtMs: number): void {
    if (this.#recovery === "none") this.onLost(nowMs, 0, newestSentAtMs, false);
  }

  onAck(sample: AckSample): void {
    const { nowMs } = sample;
    const isRoundStart = sample.priorDelivered >= this.#roundEnds;
    if (isRoundStart) {
      this.#roundEnds = sample.delivered;
      this.#round++;
      if (this.#recovery === "conserves") this.#recovery = "grows";
      if (this.#round > this.#lastLossRound + 1) this.#recovery = "none";
    }
    const isExpired = nowMs - this.#minRttAtMs > MIN_RTT_EXPIRY_MS;
    if (sample.latestRttMs > 0 && (sample.latestRttMs <= this.#minRttMs || isExpired)) {
      this.#minRttMs = sample.latestRttMs;
      this.#minRttAtMs = nowMs;
    }
    if (sample.deliveryRate > 0 && (!sample.isAppLimited || sample.deliveryRate > this.#rate.value))
      this.#rate.add(sample.deliveryRate, this.#round);
    this.#countBurst(sample);
    if (isRoundStart) this.#endRound(sample);
    this.#move(sample, isExpired);
    this.#setWindow(sample);
  }

  #countBurst({ nowMs, ackedBytes }: AckSample): void {
    const expected = this.#rate.value * (nowMs - this.#burstAtMs);
    if (this.#burstBytes <= expected) {
      this.#burstAtMs = nowMs;
      this.#burstBytes = ackedBytes;
      return;
    }
    this.#burstBytes += ackedBytes;
    this.#aggregated.add(Math.max(0, this.#burstBytes - expected), this.#round);
  }

  /** Is the pipe full: has the rate stopped growing, or does the way lose much? */
  #endRound({ isAppLimited, priorInFlight }: AckSample): void {
    const tooLossy = this.#losses >= STARTUP_LOSSES && this.#lostBytes > STARTUP_LOST_SHARE * priorInFlight;
    this.#losses = this.#lostBytes = 0;
    if (this.#isPipeFull) return;
    if (tooLossy) {
      this.#isPipeFull = true;
      return;
    }
    if (isAppLimited) return;
    if (this.#rate.value >= this.#fullRate * STARTUP_GROWTH) {
      this.#fullRate = this.#rate.value;
      this.#fullRounds = 0;
    } else if (++this.#fullRounds >= this.#profile.startupRounds) this.#isPipeFull = true;
  }

  #move(sample: AckSample, isExpired: boolean): void {
    const { nowMs, inFlight } = sample;
    if (this.#state === "startup" && this.#isPipeFull) this.#state = "drain";
    if (this.#state === "drain" && inFlight <= this.#inFlightFor(1)) this.#enterProbeRate(nowMs);
    if (this.#state === "probe-rate") this.#turnCycle(sample);
    if (isExpired && this.#state !== "probe-rtt") {
      this.#state = "probe-rtt";
      this.#probeRttUntilMs = 0;
    }
    if (this.#state !== "probe-rtt") return;
    if (this.#probeRttUntilMs === 0) {
      if (inFlight > (LEAST_PACKETS + 1) * this.#datagramBytes) return;
      this.#probeRttUntilMs = nowMs + PROBE_RTT_MS;
      this.#probeRttRound = this.#round;
    } else if (nowMs >= this.#probeRttUntilMs && this.#round > this.#probeRttRound) {
      this.#minRttAtMs = nowMs;
      if (this.#isPipeFull) this.#enterProbeRate(nowMs);
      else this.#state = "startup";
    }
  }

  #enterProbeRate(nowMs: number): void {
    this.#state = "probe-rate";
    const start = Math.floor(Math.random() * (CYCLE.length - 1));
    this.#cycle = start === 0 ? 0 : start + 1; // not where it drains
    this.#cycleAtMs = nowMs;
  }

  #turnCycle({ nowMs, priorInFlight, inFlight }: AckSample): void {
    const gain = CYCLE[this.#cycle] ?? 1;
    let isOver = nowMs - this.#cycleAtMs > this.#minRttMs;
    if (gain > 1) isOver &&= this.#losses > 0 || priorInFlight >= this.#inFlightFor(gain);
    if (gain < 1) isOver ||= inFlight <= this.#inFlightFor(1);
    if (!isOver) return;
    this.#cycle = (this.#cycle + 1) % CYCLE.length;
    this.#cycleAtMs = nowMs;
  }

  #inFlightFor(gain: number): number {
    if (!Number.isFinite(this.#minRttMs) || this.#rate.value === 0)
      return FIRST_PACKETS * this.#datagramBytes;
    return Math.max(gain * this.#rate.value * this.#minRttMs, LEAST_PACKETS * this.#datagramBytes);
  }

  /** What goes at once: a timer's worth (§4.2.2). */
  #quantum(): number {
    return Math.max(this.#datagramBytes, Math.min(QUANTUM_MS * this.#rate.value, MOST_QUANTUM_BYTES));
  }

  #setWindow({ ackedBytes, inFlight, delivered }: AckSample): void {
    const { highWindowGain, windowGain } = this.#profile;
    const gain = this.#state === "startup" || this.#state === "drain" ? highWindowGain : windowGain;
    const extra = this.#isPipeFull ? this.#aggregated.value : 0;
    const target = this.#inFlightFor(gain) + extra + QUANTA * this.#quantum();
    this.#window -= this.#lostSinceAck;
    this.#lostSinceAck = 0;
    if (this.#recovery === "begins") {
      this.#window = inFlight + ackedBytes;
      this.#roundEnds = delivered;
      this.#recovery = "conserves";
    } else if (this.#recovery === "conserves") this.#window = Math.max(this.#window, inFlight + ackedBytes);
    else if (this.#isPipeFull) this.#window = Math.min(this.#window + ackedBytes, target);
    else if (this.#window < target || this.#rate.value === 0) this.#window += ackedBytes;
    this.#window = Math.max(this.#window, LEAST_PACKETS * this.#datagramBytes);
  }

  setDatagramBytes(bytes: number): void {
    this.#datagramBytes = Math.max(this.#datagramBytes, bytes);
  }
}
