/** How fast bytes are delivered (draft-cheng-iccrg-delivery-rate-estimation-00), from what was noted as packets were sent. */
import { byteAt, float64At } from "#lib/at.ts";
import type { AckSample } from "#transport/quic/congestion/congestion.ts";
import type { SentPackets } from "./sent-packets.ts";

export class RateSampler {
  delivered = 0;
  #deliveredAtMs = 0;
  #firstSentAtMs = 0;
  /** There was nothing to send until so much is delivered; 0: there was. */
  #appLimitedUntil = 0;
  // Of the packet of the present ACK frame that was sent last.
  #priorDelivered = -1;
  #priorAtMs = 0;
  #sendMs = 0;
  #isAppLimited = false;

  onSent(sent: SentPackets, slot: number, nowMs: number, inFlight: number): void {
    if (inFlight === 0) this.#firstSentAtMs = this.#deliveredAtMs = nowMs;
    sent.delivered[slot] = this.delivered;
    sent.deliveredAt[slot] = this.#deliveredAtMs;
    sent.firstSentAt[slot] = this.#firstSentAtMs;
    sent.isAppLimited[slot] = this.#appLimitedUntil > 0 ? 1 : 0;
  }

  begin(): void {
    this.#priorDelivered = -1;
  }

  onAcked(sent: SentPackets, slot: number, bytes: number, nowMs: number): void {
    this.delivered += bytes;
    this.#deliveredAtMs = nowMs;
    const prior = float64At(sent.delivered, slot);
    if (prior < this.#priorDelivered) return;
    this.#priorDelivered = prior;
    this.#priorAtMs = float64At(sent.deliveredAt, slot);
    this.#isAppLimited = byteAt(sent.isAppLimited, slot) === 1;
    const sentAt = float64At(sent.sentAt, slot);
    this.#sendMs = sentAt - float64At(sent.firstSentAt, slot);
    this.#firstSentAtMs = sentAt;
  }

  /** What the ACK frame told. */
  finish(sample: AckSample): void {
    if (this.delivered > this.#appLimitedUntil) this.#appLimitedUntil = 0;
    sample.delivered = this.delivered;
    sample.priorDelivered = Math.max(0, this.#priorDelivered);
    sample.isAppLimited = this.#isAppLimited;
    const interval = Math.max(this.#sendMs, sample.nowMs - this.#priorAtMs);
    const isKnown = this.#priorDelivered >= 0 && interval > 0;
    sample.deliveryRate = isKnown ? (this.delivered - this.#priorDelivered) / interval : 0;
  }

  /** Nothing more is to be sent at the moment. */
  onIdle(inFlight: number): void {
    this.#appLimitedUntil = Math.max(1, this.delivered + inFlight);
  }
}
