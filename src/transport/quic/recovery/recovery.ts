/** Acknowledgements, loss and probes of one connection (RFC 9002), for all three packet number spaces. */
import { byteAt, float64At } from "#lib/at.ts";
import type { AckSample, Congestion } from "#transport/quic/congestion/congestion.ts";
import { Pacer } from "#transport/quic/congestion/pacer.ts";
import { PROTOCOL_VIOLATION, QuicFault } from "#transport/quic/fault.ts";
import type { WireReader } from "#transport/quic/wire/reader.ts";
import { AckedRanges, type StreamOutcomes } from "./acked-ranges.ts";
import { EcnCheck } from "./ecn-check.ts";
import { EcnMarking } from "./ecn-marking.ts";
import { APPLICATION_SPACE, type PacketSpace } from "./packet-space.ts";
import { ProbeTimer } from "./probe-timer.ts";
import { RateSampler } from "./rate-sampler.ts";
import { sayAgain, sayFlightAgain } from "./resend.ts";
import { RttEstimate } from "./rtt.ts";
import { ACKED, IN_FLIGHT, LOST, type SentPacket, type SentPackets } from "./sent-packets.ts";

/** A packet is lost when one with a number so much higher was acknowledged (RFC 9002 §6.1.1). */
const REORDERING = 3;
/** As far as that grows on ways that reorder: a packet that was called lost and is acknowledged all the same raises it. */
const MOST_REORDERING = 32;
const PERSISTENT_PROBES = 3;
/** Sent for one probe timeout. */
const PROBES = 2;

export class Recovery {
  readonly rtt = new RttEstimate();
  readonly sampler = new RateSampler();
  readonly pacer = new Pacer();
  congestion: Congestion;
  inFlight = 0;
  lostPackets = 0;
  congestionMarks = 0;
  /** Of the path in force. */
  marking: EcnMarking;
  readonly probes = new ProbeTimer(this.rtt);
  /** As the peer said. */
  peerAckDelayExponent = 3;
  /** Of full packets. */
  datagramBytes = 1200;
  #reordering = REORDERING;
  /** The window was full since the last acknowledgement. */
  wasWindowFull = false;
  readonly #ecn = new EcnCheck();
  readonly #streams: StreamOutcomes;
  readonly #acked: AckedRanges;
  readonly #sample: AckSample = {
    nowMs: 0,
    ackedBytes: 0,
    priorInFlight: 0,
    inFlight: 0,
    newestSentAtMs: 0,
    delivered: 0,
    priorDelivered: 0,
    deliveryRate: 0,
    isAppLimited: false,
    isWindowUnused: false,
    latestRttMs: 0,
    minRttMs: Infinity,
    smoothedRttMs: 0,
  };

  constructor(congestion: Congestion, streams: StreamOutcomes, marking = new EcnMarking(false)) {
    this.congestion = congestion;
    this.marking = marking;
    this.#streams = streams;
    this.#acked = new AckedRanges(streams);
  }

  /** The packet was built with the next number of its space. */
  onSent(space: PacketSpace, packet: SentPacket, nowMs: number): void {
    const { sent } = space;
    const slot = sent.add(packet, nowMs);
    if (packet.isMarked) this.marking.onSent();
    if (!packet.isEliciting) return;
    this.sampler.onSent(sent, slot, nowMs, this.inFlight);
    this.inFlight += packet.bytes;
    space.eliciting++;
    space.lastElicitingAtMs = this.probes.lastSentAtMs = nowMs;
    this.congestion.onSent(nowMs, packet.bytes, this.inFlight);
    this.pacer.onSent(packet.bytes);
  }

  /** An ACK frame; leaves the reader behind it. Throws `QuicFault`. Answers whether anything was new. */
  onAck(space: PacketSpace, reader: WireReader, nowMs: number, hasEcn = false): boolean {
    const { sent } = space;
    const largest = reader.varint();
    const delayUnits = reader.varint();
    let ranges = reader.varint();
    let low = largest - reader.varint();
    let high = largest;
    if (largest >= sent.next || low < 0)
      throw new QuicFault(PROTOCOL_VIOLATION, "an acknowledgement of what was not sent");
    const sample = this.#sample;
    sample.priorInFlight = this.inFlight;
    sample.ackedBytes = sample.newestSentAtMs = this.#ecn.marked = 0;
    this.sampler.begin();
    const isNew = largest > space.largestAcked;
    if (isNew) space.largestAcked = largest;
    const rttFrom = isNew ? this.#sampleStart(sent, largest) : -1;
    for (;;) {
      for (let number = Math.max(low, sent.oldest); number <= high; number++)
        this.#ackOne(space, number, nowMs);
      if (ranges-- === 0) break;
      high = low - reader.varint() - 2;
      low = high - reader.varint();
      if (low < 0) throw new QuicFault(PROTOCOL_VIOLATION, "acknowledged ranges below zero");
    }
    if (hasEcn) this.#ecn.read(reader);
    this.#acked.tell();
    sent.settle();
    if (isNew && space.id === APPLICATION_SPACE) this.#checkMarks(hasEcn, nowMs);
    if (sample.ackedBytes === 0) return false;
    if (rttFrom >= 0) this.#takeRtt(space, rttFrom, nowMs, delayUnits);
    this.probes.count = 0;
    this.#detectLost(space, nowMs);
    this.#tellCongestion(nowMs);
    return true;
  }

  /** RFC 9002 §7.1. */
  #checkMarks(hasEcn: boolean, nowMs: number): void {
    const congested = this.#ecn.check(hasEcn, this.marking);
    this.congestionMarks += congested;
    if (congested > 0) this.congestion.onMarked(nowMs, this.#sample.newestSentAtMs);
  }

  #sampleStart(sent: SentPackets, number: number): number {
    const slot = sent.slotOf(number);
    return number >= sent.first && byteAt(sent.state, slot) === IN_FLIGHT ? float64At(sent.sentAt, slot) : -1;
  }

  #takeRtt(space: PacketSpace, sentAtMs: number, nowMs: number, delayUnits: number): void {
    const { isConfirmed, peerMaxAckDelayMs } = this.probes;
    const isApplication = space.id === APPLICATION_SPACE;
    const saidMs = isApplication ? (delayUnits * 2 ** this.peerAckDelayExponent) / 1000 : 0;
    this.rtt.add(sentAtMs, nowMs, isConfirmed ? Math.min(saidMs, peerMaxAckDelayMs) : saidMs);
  }

  #tellCongestion(nowMs: number): void {
    const sample = this.#sample;
    sample.nowMs = nowMs;
    sample.inFlight = this.inFlight;
    sample.isWindowUnused = !this.wasWindowFull;
    this.wasWindowFull = false;
    sample.latestRttMs = this.rtt.latestMs;
    sample.minRttMs = this.rtt.minMs;
    sample.smoothedRttMs = this.rtt.smoothedMs;
    this.sampler.finish(sample);
    this.congestion.onAck(sample);
  }

  #ackOne(space: PacketSpace, number: number, nowMs: number): void {
    const { sent } = space;
    const slot = sent.slotOf(number);
    const state = byteAt(sent.state, slot);
    if (byteAt(sent.isMarked, slot) === 1 && (state === LOST || state === IN_FLIGHT)) this.#ecn.marked++;
    if (state === LOST) {
      sent.state[slot] = ACKED;
      this.#reordering = Math.min(
        MOST_REORDERING,
        Math.max(this.#reordering, space.largestAcked - number + 1),
      );
    }
    if (state !== IN_FLIGHT) return;
    const bytes = sent.bytes[slot] ?? 0;
    sent.state[slot] = ACKED;
    this.inFlight -= bytes;
    space.eliciting--;
    const sample = this.#sample;
    sample.ackedBytes += bytes;
    sample.newestSentAtMs = Math.max(sample.newestSentAtMs, float64At(sent.sentAt, slot));
    this.sampler.onAcked(sent, slot, bytes, nowMs);
    const stream = float64At(sent.stream, slot);
    if (stream >= 0)
      this.#acked.add(
        stream,
        float64At(sent.offset, slot),
        sent.length[slot] ?? 0,
        byteAt(sent.isLast, slot) === 1,
      );
    if (sent.items.size === 0) return;
    for (const item of sent.items.get(number) ?? []) item.onAcked();
    sent.items.delete(number);
  }

  #detectLost(space: PacketSpace, nowMs: number): void {
    const { sent } = space;
    const lossDelayMs = this.rtt.lossDelayMs;
    let [bytes, newest] = [0, 0];
    // Of packets that are lost one behind the other (RFC 9002 §7.6): when the first of them went, and the longest time.
    let [runFrom, longestMs] = [Infinity, 0];
    space.lossAtMs = Infinity;
    for (let number = sent.first; number <= space.largestAcked; number++) {
      const slot = sent.slotOf(number);
      const state = byteAt(sent.state, slot);
      if (state === ACKED && byteAt(sent.eliciting, slot) === 1) runFrom = Infinity;
      if (state !== IN_FLIGHT) continue;
      const sentAt = float64At(sent.sentAt, slot);
      if (number > space.largestAcked - this.#reordering && sentAt + lossDelayMs > nowMs) {
        space.lossAtMs = Math.min(space.lossAtMs, sentAt + lossDelayMs);
        continue;
      }
      newest = Math.max(newest, sentAt);
      if (sentAt > this.rtt.firstSampleAtMs) runFrom = Math.min(runFrom, sentAt);
      longestMs = Math.max(longestMs, sentAt - runFrom);
      const size = sent.bytes[slot] ?? 0;
      // A probe of a larger size says nothing about the way (RFC 9000 §14.4).
      if (size <= this.datagramBytes) bytes += size;
      sent.state[slot] = LOST;
      this.inFlight -= size;
      space.eliciting--;
      this.lostPackets++;
      if (byteAt(sent.isMarked, slot) === 1) this.marking.onLost();
      sayAgain(this.#streams, sent, number);
    }
    sent.settle();
    if (bytes === 0) return;
    const mostMs = PERSISTENT_PROBES * (this.rtt.probeTimeoutMs + this.probes.peerMaxAckDelayMs);
    this.congestion.onLost(nowMs, bytes, newest, longestMs > mostMs);
  }

  /** When `onTimeout` is due; Infinity: never. `mustProbe`: see `ProbeTimer.deadline`. */
  deadline(spaces: readonly PacketSpace[], mustProbe: boolean): number {
    return this.probes.deadline(spaces, mustProbe);
  }

  onTimeout(spaces: readonly PacketSpace[], mustProbe: boolean, nowMs: number): void {
    let didLose = false;
    for (const space of spaces)
      if (space.lossAtMs <= nowMs) {
        this.#detectLost(space, nowMs);
        didLose = true;
      }
    if (didLose || this.deadline(spaces, mustProbe) > nowMs) return;
    for (const space of this.probes.expire(spaces)) {
      space.probes = PROBES;
      sayFlightAgain(this.#streams, space.sent, PROBES); // they may still be acknowledged
    }
  }

  /** None of it was understood, and nothing is to be concluded from that: a Retry. */
  sayAllAgain(space: PacketSpace): void {
    const { sent } = space;
    sayFlightAgain(this.#streams, sent);
    this.inFlight -= sent.forget();
    space.eliciting = 0;
    space.lossAtMs = Infinity;
    this.probes.count = 0;
  }

  /** The keys of the space are gone. */
  drop(space: PacketSpace): void {
    this.inFlight -= space.drop();
    this.probes.count = 0;
  }
}
