/** From what is to be said to datagrams, as far as congestion, pacing and the peer's address allow. */
import type { Memory, QuicCiphers } from "#platform/quic.ts";
import type { PeerIds } from "./connection-ids.ts";
import type { ControlQueue } from "./control-queue.ts";
import type { DatagramQueue } from "./datagram-queue.ts";
import { PathMtu } from "./path-mtu.ts";
import type { ApplicationKeys } from "./protection/application-keys.ts";
import { APPLICATION_SPACE, INITIAL_SPACE, type PacketSpace } from "./recovery/packet-space.ts";
import type { Recovery } from "./recovery/recovery.ts";
import type { SentItem } from "./recovery/sent-packets.ts";
import type { StreamSet } from "./streams/stream-set.ts";
import { FRAME } from "./wire/frames.ts";
import { beginLong, finishLong, HANDSHAKE, INITIAL, MIN_INITIAL_BYTES, writeShort } from "./wire/header.ts";
import { numberBytesFor, writePacketNumber } from "./wire/packet-number.ts";
import { WireWriter } from "./wire/writer.ts";

const TAG_BYTES = 16;
const MOST_PACKET_BYTES = 2048;
/** Between two looks at what has come in: a sender at full speed leaves others their turn. */
const MOST_PACKETS_A_TURN = 128;
/** A frame with less room is not begun. */
const LEAST_ROOM = 40;
/** What one round of a server may send for each byte that an address, not yet shown to be the client's, has sent. */
const AMPLIFICATION = 3;
const NO_TOKEN = new Uint8Array(0);

export interface PacketSenderOptions {
  readonly isServer: boolean;
  readonly ciphers: QuicCiphers;
  readonly spaces: readonly [PacketSpace, PacketSpace, PacketSpace];
  readonly keys: ApplicationKeys;
  readonly recovery: Recovery;
  readonly controls: ControlQueue;
  readonly datagrams: DatagramQueue;
  readonly streams: StreamSet;
  readonly peerIds: PeerIds;
  readonly ownId: Uint8Array;
  readonly mostDatagramBytes: number;
  readonly send: (datagram: Uint8Array) => void;
  /** A client has sent its first Handshake packet. */
  readonly onHandshakeSent: () => void;
}

interface MemoryOfThread {
  memory?: Memory;
}
/** Where packets are built, one at a time. */
const shared: MemoryOfThread = {};

export class PacketSender {
  readonly #options: PacketSenderOptions;
  readonly #memory: Memory;
  readonly #out: WireWriter;
  readonly mtu: PathMtu;
  /** Of a Retry or an earlier connection. */
  token: Uint8Array = NO_TOKEN;
  /** Of an address that is not validated: what came from it, and what went there. */
  receivedBytes = 0;
  sentBytes = 0;
  isValidated: boolean;
  /** A PING goes with the next packet. */
  wantsPing = false;
  /** When the pacer lets the next packet go; Infinity: it does not hold any back. */
  pacedAtMs = Infinity;
  readonly #layout = { headBytes: 0, numberBytes: 0, bodyBytes: 0 };
  readonly #packet = {
    bytes: 0,
    isEliciting: false,
    stream: -1,
    offset: 0,
    length: 0,
    isLast: false,
    items: null as SentItem[] | null,
  };

  constructor(options: PacketSenderOptions, isValidated: boolean) {
    this.#options = options;
    this.#memory = shared.memory ??= options.ciphers.allocate(MOST_PACKET_BYTES);
    this.#out = new WireWriter(this.#memory.bytes);
    this.isValidated = isValidated;
    const most = Math.min(options.mostDatagramBytes, MOST_PACKET_BYTES);
    this.mtu = new PathMtu(most, (bytes) => {
      options.recovery.datagramBytes = bytes;
      options.recovery.congestion.setDatagramBytes(bytes);
    });
  }

  /** Sends all that may go. True: there is more, and it is to be called again soon. */
  flush(nowMs: number): boolean {
    this.pacedAtMs = Infinity;
    const { spaces } = this.#options;
    for (let count = 0; count < MOST_PACKETS_A_TURN; count++) {
      if (!spaces.some((space) => space.isOpen && this.#sendOf(space, nowMs))) return false;
    }
    return true;
  }

  /** Until more comes from the address, or it is shown to be the client's (RFC 9000 §8.1). */
  get isHeldBack(): boolean {
    return !this.isValidated && this.sentBytes + MIN_INITIAL_BYTES > AMPLIFICATION * this.receivedBytes;
  }

  #sendOf(space: PacketSpace, nowMs: number): boolean {
    if (this.isHeldBack || space.sent.isFull) return false;
    const isAckDue = space.received.dueAtMs <= nowMs;
    const mayElicit = this.#mayElicit(space, nowMs);
    if (!isAckDue && !mayElicit) return false;
    // A client that is about to send its Finished need not acknowledge Initials: their keys go with it.
    if (!mayElicit && space.id === INITIAL_SPACE && this.#options.spaces[1].crypto.hasData) return false;
    return this.#build(space, nowMs, mayElicit);
  }

  /** Is there something to send that counts as in flight, and may it go? */
  #mayElicit(space: PacketSpace, nowMs: number): boolean {
    const { recovery } = this.#options;
    if (space.probes > 0) return true;
    if (!this.#hasFrames(space)) {
      if (space.id === APPLICATION_SPACE) recovery.sampler.onIdle(recovery.inFlight);
      return false;
    }
    // The handshake is a few packets, and nothing moves without them.
    if (space.id !== APPLICATION_SPACE) return true;
    if (recovery.inFlight + this.mtu.bytes > recovery.congestion.windowBytes) {
      recovery.wasWindowFull = true;
      return false;
    }
    const waitMs = recovery.pacer.waitMs(nowMs, recovery.congestion.pacingRate, this.mtu.bytes);
    if (waitMs === 0) return true;
    recovery.wasWindowFull = true; // it would be, but for the pacer
    this.pacedAtMs = nowMs + waitMs;
    return false;
  }

  #hasFrames(space: PacketSpace): boolean {
    if (space.crypto.hasData) return true;
    if (space.id !== APPLICATION_SPACE) return false;
    const { controls, datagrams, streams } = this.#options;
    return (
      controls.hasFrames ||
      datagrams.hasData ||
      this.wantsPing ||
      this.mtu.wantsProbe ||
      streams.next() !== null
    );
  }

  #build(space: PacketSpace, nowMs: number, mayElicit: boolean): boolean {
    const out = this.#out;
    const packet = this.#packet;
    const number = space.sent.next;
    out.at = 0;
    packet.stream = -1;
    packet.length = 0;
    packet.isLast = packet.isEliciting = false;
    packet.items = null;
    const numberBytes = numberBytesFor(number, space.largestAcked);
    const lengthAt = this.#writeHeader(space, numberBytes);
    writePacketNumber(out, number, numberBytes);
    const headBytes = out.at;
    const isProbe = mayElicit && space.id === APPLICATION_SPACE && this.mtu.wantsProbe && space.probes === 0;
    const end = (space.id === INITIAL_SPACE ? MIN_INITIAL_BYTES : this.mtu.bytes) - TAG_BYTES;
    if (isProbe) this.#writeMtuProbe(out);
    else {
      if (space.received.isWanted) space.received.write(out, end - out.at, nowMs);
      if (mayElicit) this.#writeFrames(space, end, headBytes);
    }
    if (out.at === headBytes) return false;
    this.#finish(space, { headBytes, numberBytes, lengthAt, number }, nowMs);
    return true;
  }

  #writeHeader(space: PacketSpace, numberBytes: number): number {
    const { peerIds, ownId, keys } = this.#options;
    if (space.id === APPLICATION_SPACE) {
      writeShort(this.#out, peerIds.current, keys.phase, numberBytes);
      return -1;
    }
    return beginLong(this.#out, {
      type: space.id === INITIAL_SPACE ? INITIAL : HANDSHAKE,
      destination: peerIds.current,
      source: ownId,
      token: this.token,
      numberBytes,
    });
  }

  #writeMtuProbe(out: WireWriter): void {
    const { size, item } = this.mtu.takeProbe();
    out.byte(FRAME.ping);
    out.zeros(size - TAG_BYTES - out.at);
    this.#packet.isEliciting = true;
    this.#packet.items = [item];
  }

  #writeFrames(space: PacketSpace, end: number, headBytes: number): void {
    const out = this.#out;
    for (let room = end - out.at; room >= LEAST_ROOM; room = end - out.at) {
      const item = space.crypto.hasData ? space.crypto.writeFrame(out, room) : null;
      if (item === null) break;
      this.#add(item);
    }
    if (space.id === APPLICATION_SPACE) this.#writeApplication(end, headBytes);
    if (!this.#packet.isEliciting && (space.probes > 0 || this.wantsPing)) {
      out.byte(FRAME.ping);
      this.#packet.isEliciting = true;
    }
    if (!this.#packet.isEliciting) return;
    if (space.probes > 0) space.probes--;
    if (space.id === APPLICATION_SPACE) this.wantsPing = false;
  }

  #add(item: SentItem): void {
    const packet = this.#packet;
    packet.isEliciting = true;
    if (packet.items === null) packet.items = [item];
    else packet.items.push(item);
  }

  #writeApplication(end: number, headBytes: number): void {
    const { controls, datagrams } = this.#options;
    const out = this.#out;
    while (controls.hasFrames && end - out.at >= LEAST_ROOM) {
      const item = controls.writeFrame(out, end - out.at);
      if (item === null) break;
      this.#add(item);
    }
    while (datagrams.hasData && datagrams.writeFrame(out, end - out.at, out.at === headBytes))
      this.#packet.isEliciting = true;
    while (end - out.at >= LEAST_ROOM && this.#writeStream(end - out.at));
  }

  #writeStream(room: number): boolean {
    const { streams } = this.#options;
    const stream = streams.next();
    const piece = stream?.send?.writeFrame(this.#out, room, streams.credit) ?? null;
    if (stream === null || piece === null) return false;
    streams.onSent(piece.freshBytes);
    const packet = this.#packet;
    if (packet.stream < 0) {
      packet.stream = stream.id;
      packet.offset = piece.offset;
      packet.length = piece.length;
      packet.isLast = piece.isLast;
      packet.isEliciting = true;
      return true;
    }
    const { offset, length, isLast } = piece;
    this.#add({
      onAcked: () => streams.onAcked(stream.id, offset, length, isLast),
      onLost: () => streams.onLost(stream.id, offset, length, isLast),
    });
    return true;
  }

  #finish(
    space: PacketSpace,
    place: { headBytes: number; numberBytes: number; lengthAt: number; number: number },
    nowMs: number,
  ): void {
    const { recovery, keys, send, isServer, onHandshakeSent } = this.#options;
    const { headBytes, numberBytes, lengthAt, number } = place;
    const out = this.#out;
    if (space.id === INITIAL_SPACE) out.zeros(Math.max(0, MIN_INITIAL_BYTES - TAG_BYTES - out.at));
    out.zeros(Math.max(0, 4 - numberBytes - (out.at - headBytes))); // or there is no sample for header protection
    const bodyBytes = out.at - headBytes;
    if (lengthAt >= 0) finishLong(out, lengthAt, numberBytes + bodyBytes + TAG_BYTES);
    const layout = this.#layout;
    layout.headBytes = headBytes;
    layout.numberBytes = numberBytes;
    layout.bodyBytes = bodyBytes;
    const seals = space.id === APPLICATION_SPACE ? keys.seals : space.seals;
    seals?.seal(this.#memory, 0, layout, number);
    const packet = this.#packet;
    packet.bytes = out.at + TAG_BYTES;
    recovery.onSent(space, packet, nowMs);
    this.sentBytes += packet.bytes;
    if (space.id === APPLICATION_SPACE) keys.onSealed(nowMs, recovery.rtt.probeTimeoutMs);
    send(this.#memory.bytes.subarray(0, packet.bytes));
    if (space.id > INITIAL_SPACE && !isServer && !this.#options.spaces[0].isDropped) onHandshakeSent();
  }

  /** One packet with a single frame that is not waited for, in each space that may be open: the end. */
  sendLast(write: (out: WireWriter, space: PacketSpace) => void): Uint8Array[] {
    const { spaces, send, keys } = this.#options;
    const sent: Uint8Array[] = [];
    for (const space of spaces) {
      if (!space.isOpen) continue;
      const out = this.#out;
      out.at = 0;
      const number = space.sent.next;
      const numberBytes = numberBytesFor(number, space.largestAcked);
      const lengthAt = this.#writeHeader(space, numberBytes);
      writePacketNumber(out, number, numberBytes);
      const headBytes = out.at;
      write(out, space);
      if (space.id === INITIAL_SPACE) out.zeros(Math.max(0, MIN_INITIAL_BYTES - TAG_BYTES - out.at));
      const bodyBytes = out.at - headBytes;
      if (lengthAt >= 0) finishLong(out, lengthAt, numberBytes + bodyBytes + TAG_BYTES);
      space.sent.take();
      const seals = space.id === APPLICATION_SPACE ? keys.seals : space.seals;
      seals?.seal(this.#memory, 0, { headBytes, numberBytes, bodyBytes }, number);
      const datagram = new Uint8Array(this.#memory.bytes.subarray(0, out.at + TAG_BYTES));
      const mayGo =
        this.isValidated || this.sentBytes + datagram.length <= AMPLIFICATION * this.receivedBytes;
      if (!mayGo) break;
      this.sentBytes += datagram.length;
      send(datagram);
      sent.push(datagram);
    }
    return sent;
  }
}
