/** Acknowledgements, loss and probes of one connection (RFC 9002), for all three packet number spaces. */
import { byteAt, float64At } from "#lib/at.ts";
import type { AckSample, Congestion } from "#transport/quic/congestion/congestion.ts";
import { Pacer } from "#transport/quic/congestion/pacer.ts";
import { PROTOCOL_VIOLATION, QuicFault } from "#transport/quic/fault.ts";
import type { WireReader } from "#transport/quic/wire/reader.ts";
import { APPLICATION_SPACE, HANDSHAKE_SPACE, type PacketSpace } from "./packet-space.ts";
import { RateSampler } from "./rate-sampler.ts";
import { RttEstimate } from "./rtt.ts";
import { ACKED, IN_FLIGHT, LOST, type SentItem, type SentPackets } from "./sent-packets.ts";

/** A packet is lost when one with a number so much higher was acknowledged (RFC 9002 §6.1.1). */
const REORDERING = 3;
/** As far as that grows on ways that reorder: a packet that was called lost and is acknowledged all the same raises it. */
const MOST_REORDERING = 32;
const PERSISTENT_PROBES = 3;
const MOST_BACKOFF = 10;
/** Sent for one probe timeout. */
const PROBES = 2;

/** Where stream bytes that were acknowledged or lost are told. */
export interface StreamOutcomes {
  onAcked(id: number, offset: number, length: number, isLast: boolean): void;
  onLost(id: number, offset: number, length: number, isLast: boolean): void;
}

/** What a packet carried. */
export interface SentPacket {
  readonly bytes: number;
  readonly isEliciting: boolean;
  /** -1: no stream. */
  readonly stream: number;
  readonly offset: number;
  readonly length: number;
  readonly isLast: boolean;
  /** Null: nothing else that has to arrive. */
  readonly items: readonly SentItem[] | null;
}

export class Recovery {
  readonly rtt = new RttEstimate();
  readonly sampler = new RateSampler();
  readonly pacer = new Pacer();
  congestion: Congestion;
  inFlight = 0;
  lostPackets = 0;
  /** Of probe timeouts since something was heard. */
  probeCount = 0;
  /** As the peer said. */
  peerMaxAckDelayMs = 25;
  peerAckDelayExponent = 3;
  isConfirmed = false;
  #lastSentAtMs = 0;
  #reordering = REORDERING;
  /** The window was full since the last acknowledgement. */
  wasWindowFull = false;
  readonly #streams: StreamOutcomes;
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

  constructor(congestion: Congestion, streams: StreamOutcomes) {
    this.congestion = congestion;
    this.#streams = streams;
  }

  /** Answers with the number; the packet was built with it. */
  onSent(space: PacketSpace, packet: SentPacket, nowMs: number): void {
    const { sent } = space;
    const number = sent.next;
    const slot = sent.take();
    sent.sentAt[slot] = nowMs;
    sent.bytes[slot] = packet.bytes;
    sent.eliciting[slot] = packet.isEliciting ? 1 : 0;
    sent.stream[slot] = packet.stream;
    sent.offset[slot] = packet.offset;
    sent.length[slot] = packet.length;
    sent.isLast[slot] = packet.isLast ? 1 : 0;
    sent.state[slot] = packet.isEliciting ? IN_FLIGHT : ACKED; // what is not acknowledged is not waited for
    if (!packet.isEliciting) {
      sent.settle();
      return;
    }
    if (packet.items !== null) sent.items.set(number, packet.items);
    this.sampler.onSent(sent, slot, nowMs, this.inFlight);
    this.inFlight += packet.bytes;
    space.eliciting++;
    space.lastElicitingAtMs = this.#lastSentAtMs = nowMs;
    this.congestion.onSent(nowMs, packet.bytes, this.inFlight);
    this.pacer.onSent(packet.bytes);
  }

  /** An ACK frame; leaves the reader behind its ranges. Throws `QuicFault`. Answers whether anything was new. */
  onAck(space: PacketSpace, reader: WireReader, nowMs: number): boolean {
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
    sample.ackedBytes = sample.newestSentAtMs = 0;
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
    sent.settle();
    if (sample.ackedBytes === 0) return false;
    if (rttFrom >= 0) this.#takeRtt(space, nowMs - rttFrom, delayUnits);
    this.probeCount = 0;
    this.#detectLost(space, nowMs);
    this.#tellCongestion(nowMs);
    return true;
  }

  #sampleStart(sent: SentPackets, number: number): number {
    const slot = sent.slotOf(number);
    return number >= sent.first && byteAt(sent.state, slot) === IN_FLIGHT ? float64At(sent.sentAt, slot) : -1;
  }

  #takeRtt(space: PacketSpace, sampleMs: number, delayUnits: number): void {
    if (space.id !== APPLICATION_SPACE) return this.rtt.add(sampleMs, 0);
    const delayMs = (delayUnits * 2 ** this.peerAckDelayExponent) / 1000;
    this.rtt.add(sampleMs, this.isConfirmed ? Math.min(delayMs, this.peerMaxAckDelayMs) : delayMs);
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
      this.#streams.onAcked(
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
    let [bytes, newest, oldest] = [0, 0, Infinity];
    space.lossAtMs = Infinity;
    for (let number = sent.first; number <= space.largestAcked; number++) {
      const slot = sent.slotOf(number);
      if (byteAt(sent.state, slot) !== IN_FLIGHT) continue;
      const sentAt = float64At(sent.sentAt, slot);
      if (number > space.largestAcked - this.#reordering && sentAt + lossDelayMs > nowMs) {
        space.lossAtMs = Math.min(space.lossAtMs, sentAt + lossDelayMs);
        continue;
      }
      newest = Math.max(newest, sentAt);
      oldest = Math.min(oldest, sentAt);
      const size = sent.bytes[slot] ?? 0;
      // A probe of a larger size says nothing about the way (RFC 9000 §14.4).
      if (size <= this.datagramBytes) bytes += size;
      sent.state[slot] = LOST;
      this.inFlight -= size;
      space.eliciting--;
      this.lostPackets++;
      this.#sayAgain(sent, number, slot);
    }
    sent.settle();
    if (bytes === 0) return;
    const longMs = PERSISTENT_PROBES * (this.rtt.probeTimeoutMs + this.peerMaxAckDelayMs);
    const isPersistent = this.rtt.hasSample && newest - oldest > longMs && this.probeCount > 0;
    this.congestion.onLost(nowMs, bytes, newest, isPersistent);
  }

  /** Of full packets. */
  datagramBytes = 1200;

  #sayAgain(sent: SentPackets, number: number, slot: number): void {
    const stream = float64At(sent.stream, slot);
    if (stream >= 0)
      this.#streams.onLost(
        stream,
        float64At(sent.offset, slot),
        sent.length[slot] ?? 0,
        byteAt(sent.isLast, slot) === 1,
      );
    for (const item of sent.items.get(number) ?? []) item.onLost();
    sent.items.delete(number);
  }

  /** When `onTimeout` is due; Infinity: never. `mustProbe`: the peer may wait for us to show that our address is ours. */
  deadline(spaces: readonly PacketSpace[], mustProbe: boolean): number {
    let atMs = Infinity;
    for (const space of spaces) atMs = Math.min(atMs, space.lossAtMs, this.#probeAt(space));
    if (atMs === Infinity && mustProbe) return this.#lastSentAtMs + this.#backedOff(this.rtt.probeTimeoutMs);
    return atMs;
  }

  #probeAt(space: PacketSpace): number {
    if (space.eliciting === 0 || !space.isOpen) return Infinity;
    if (space.id === APPLICATION_SPACE && !this.isConfirmed) return Infinity;
    const delayMs = space.id === APPLICATION_SPACE ? this.peerMaxAckDelayMs : 0;
    return space.lastElicitingAtMs + this.#backedOff(this.rtt.probeTimeoutMs + delayMs);
  }

  #backedOff(timeoutMs: number): number {
    return timeoutMs * 2 ** Math.min(this.probeCount, MOST_BACKOFF);
  }

  onTimeout(spaces: readonly PacketSpace[], mustProbe: boolean, nowMs: number): void {
    let didLose = false;
    for (const space of spaces)
      if (space.lossAtMs <= nowMs) {
        this.#detectLost(space, nowMs);
        didLose = true;
      }
    if (didLose || this.deadline(spaces, mustProbe) > nowMs) return;
    this.probeCount++;
    const due = spaces.filter((space) => this.#probeAt(space) < Infinity);
    for (const space of due) this.#probe(space);
    if (due.length > 0) return;
    const highest = spaces.findLast(({ isOpen, id }) => isOpen && id <= HANDSHAKE_SPACE);
    if (highest !== undefined) highest.probes = 1;
  }

  /** What the oldest packets carried goes again, and they may still be acknowledged. */
  #probe(space: PacketSpace): void {
    const { sent } = space;
    space.probes = PROBES;
    let count = 0;
    for (let number = sent.first; number < sent.next && count < PROBES; number++) {
      const slot = sent.slotOf(number);
      if (byteAt(sent.state, slot) !== IN_FLIGHT) continue;
      count++;
      this.#sayAgain(sent, number, slot);
    }
  }

  /** None of it was understood, and nothing is to be concluded from that: a Retry. */
  sayAllAgain(space: PacketSpace): void {
    const { sent } = space;
    for (let number = sent.first; number < sent.next; number++) {
      const slot = sent.slotOf(number);
      if (byteAt(sent.state, slot) === IN_FLIGHT) this.#sayAgain(sent, number, slot);
    }
    this.inFlight -= sent.forget();
    space.eliciting = 0;
    space.lossAtMs = Infinity;
    this.probeCount = 0;
  }

  /** The keys of the space are gone. */
  drop(space: PacketSpace): void {
    this.inFlight -= space.drop();
    this.probeCount = 0;
  }
}
