/** From what is to be said to datagrams, as far as congestion, pacing and the peer's address allow. */
import type { PacketMemory, QuicCiphers } from "#platform/quic.ts";
import type { PeerIds } from "./connection-ids.ts";
import { DatagramRun, type SendDatagrams } from "./datagram-run.ts";
import { type FrameSources, PacketFrames } from "./packet-frames.ts";
import { givePacketMemory, takePacketMemory } from "./packet-memories.ts";
import type { Path } from "./path.ts";
import { PathMtu } from "./path-mtu.ts";
import type { ApplicationKeys } from "./protection/application-keys.ts";
import {
  APPLICATION_SPACE,
  HANDSHAKE_SPACE,
  INITIAL_SPACE,
  type PacketSpace,
} from "./recovery/packet-space.ts";
import type { Recovery } from "./recovery/recovery.ts";
import {
  beginLong,
  finishLong,
  HANDSHAKE,
  INITIAL,
  MIN_INITIAL_BYTES,
  writeShort,
  ZERO_RTT,
} from "./wire/header.ts";
import { numberBytesFor, writePacketNumber } from "./wire/packet-number.ts";
import { WireWriter } from "./wire/writer.ts";

const TAG_BYTES = 16;
const MOST_PACKET_BYTES = 2048;
/** Between two looks at what has come in: a sender at full speed leaves others their turn. */
const MOST_PACKETS_A_TURN = 128;
/** Packet number and payload have at least so many bytes, or there is no sample for header protection. */
const LEAST_PROTECTED_BYTES = 4;
const NO_TOKEN = new Uint8Array(0);

export interface PacketSenderOptions extends Omit<FrameSources, "mtu"> {
  readonly isServer: boolean;
  readonly ciphers: QuicCiphers;
  readonly spaces: readonly [PacketSpace, PacketSpace, PacketSpace];
  readonly keys: ApplicationKeys;
  readonly recovery: Recovery;
  readonly peerIds: PeerIds;
  readonly ownId: Uint8Array;
  readonly mostDatagramBytes: number;
  readonly events: SendDatagrams;
  /** A client has sent its first Handshake packet. */
  onHandshakeSent(): void;
}

export class PacketSender {
  readonly #options: PacketSenderOptions;
  readonly #out = new WireWriter();
  readonly #run: DatagramRun;
  readonly #frames: PacketFrames;
  readonly mtu: PathMtu;
  /** Of a Retry or an earlier connection. */
  token: Uint8Array = NO_TOKEN;
  /** Where packets go. */
  path: Path;
  /** When the pacer lets the next packet go; Infinity: it does not hold any back. */
  pacedAtMs = Infinity;
  readonly #layout = { headBytes: 0, numberBytes: 0, bodyBytes: 0 };
  /** Of a long header: where its length stands; negative: the header is short. */
  #lengthAt = -1;

  constructor(options: PacketSenderOptions, path: Path) {
    this.#options = options;
    this.#run = new DatagramRun(options.events, path);
    this.path = path;
    const most = Math.min(options.mostDatagramBytes, MOST_PACKET_BYTES);
    this.mtu = new PathMtu(most, (bytes) => {
      options.recovery.datagramBytes = bytes;
      options.recovery.congestion.setDatagramBytes(bytes);
    });
    const { controls, datagrams, streams } = options;
    this.#frames = new PacketFrames({ controls, datagrams, streams, mtu: this.mtu });
  }

  /** A PING goes with the next packet. */
  get wantsPing(): boolean {
    return this.#frames.wantsPing;
  }

  set wantsPing(wants: boolean) {
    this.#frames.wantsPing = wants;
  }

  /** Nothing is heard any more. */
  onSilence(): void {
    this.mtu.onSilence();
    this.path.marking.onSilence();
  }

  /** Sends all that may go. True: there is more, and it is to be called again soon. */
  flush(nowMs: number): boolean {
    this.pacedAtMs = Infinity;
    const { recovery } = this.#options;
    // Packets of the handshake are not marked: a path that drops those would hold it up.
    this.path.isMarked = recovery.probes.isConfirmed && this.path.marking.isOn;
    const memory = takePacketMemory(this.#options.ciphers);
    try {
      this.#run.begin(memory.bytes, this.path);
      for (let count = 0; count < MOST_PACKETS_A_TURN; count++)
        if (!this.#sendOne(memory, nowMs)) return false;
      return true;
    } finally {
      this.#run.send();
      givePacketMemory(memory);
    }
  }

  #sendOne(memory: PacketMemory, nowMs: number): boolean {
    for (const space of this.#options.spaces)
      if (space.isOpen && this.#sendOf(memory, space, nowMs)) return true;
    return false;
  }

  #sendOf(memory: PacketMemory, space: PacketSpace, nowMs: number): boolean {
    if (this.path.isHeldBack || space.sent.isFull) return false;
    const isAckDue = space.received.dueAtMs <= nowMs;
    const mayElicit = this.#mayElicit(space, nowMs);
    if (!isAckDue && !mayElicit) return false;
    // A client that is about to send its Finished need not acknowledge Initials: their keys go with it.
    if (!mayElicit && space.id === INITIAL_SPACE && this.#options.spaces[1].crypto.hasData) return false;
    return this.#build(memory, space, nowMs, mayElicit);
  }

  /** Is there something to send that counts as in flight, and may it go? */
  #mayElicit(space: PacketSpace, nowMs: number): boolean {
    const { recovery } = this.#options;
    if (space.probes > 0) return true;
    if (!this.#frames.has(space)) {
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

  #build(memory: PacketMemory, space: PacketSpace, nowMs: number, mayElicit: boolean): boolean {
    const out = this.#out;
    const start = this.#run.room(MOST_PACKET_BYTES);
    const isInitial = space.id === INITIAL_SPACE;
    const number = this.#begin(memory, start, space);
    const bodyAt = out.at;
    const isProbe = mayElicit && space.id === APPLICATION_SPACE && this.mtu.wantsProbe && space.probes === 0;
    if (isProbe) {
      const { size, item } = this.mtu.takeProbe();
      this.#frames.writeMtuProbe(out, start + size - TAG_BYTES, item);
    } else {
      const end = start + (isInitial ? MIN_INITIAL_BYTES : this.mtu.bytes) - TAG_BYTES;
      this.#frames.write(out, end, space, mayElicit, nowMs);
    }
    if (out.at === bodyAt) return false;
    this.#seal(memory, start, space, number, isInitial ? MIN_INITIAL_BYTES : 0);
    this.#note(space, out.at + TAG_BYTES - start, nowMs);
    return true;
  }

  /** The header; answers the packet number. */
  #begin(memory: PacketMemory, start: number, space: PacketSpace): number {
    const { peerIds, ownId, keys } = this.#options;
    const out = this.#out.reset(memory.bytes, start);
    const layout = this.#layout;
    const number = space.sent.next;
    const numberBytes = (layout.numberBytes = numberBytesFor(number, space.largestAcked));
    const destination = peerIds.current;
    this.#lengthAt = -1;
    const isEarly = space.id === APPLICATION_SPACE && keys.seals === null;
    if (space.id === APPLICATION_SPACE && !isEarly) writeShort(out, destination, keys.phase, numberBytes);
    else {
      const type = isEarly ? ZERO_RTT : space.id === INITIAL_SPACE ? INITIAL : HANDSHAKE;
      this.#lengthAt = beginLong(out, { type, destination, source: ownId, token: this.token, numberBytes });
    }
    writePacketNumber(out, number, numberBytes);
    layout.headBytes = out.at - start;
    return number;
  }

  /** Protects what was written, and pads it to `leastBytes`. */
  #seal(memory: PacketMemory, start: number, space: PacketSpace, number: number, leastBytes: number): void {
    const out = this.#out;
    const layout = this.#layout;
    const bodyAt = start + layout.headBytes;
    const { numberBytes } = layout;
    const end = Math.max(start + leastBytes - TAG_BYTES, bodyAt + LEAST_PROTECTED_BYTES - numberBytes);
    out.zeros(Math.max(0, end - out.at));
    layout.bodyBytes = out.at - bodyAt;
    if (this.#lengthAt >= 0) finishLong(out, this.#lengthAt, numberBytes + layout.bodyBytes + TAG_BYTES);
    const seals = (space.id === APPLICATION_SPACE ? this.#options.keys.seals : null) ?? space.seals;
    seals?.seal(memory, start, layout, number);
  }

  /** The packet goes. */
  #note(space: PacketSpace, bytes: number, nowMs: number): void {
    const { recovery, keys, isServer, spaces } = this.#options;
    const { carried } = this.#frames;
    carried.bytes = bytes;
    carried.isMarked = this.path.isMarked;
    recovery.onSent(space, carried, nowMs);
    this.path.sentBytes += bytes;
    this.#run.add(bytes);
    if (space.id === APPLICATION_SPACE) keys.onSealed(nowMs, recovery.rtt.probeTimeoutMs);
    if (space.id === HANDSHAKE_SPACE && !isServer && !spaces[0].isDropped) this.#options.onHandshakeSent();
  }

  /** One packet with a single frame that is not waited for, in each space that may be open: the end. */
  sendLast(write: (out: WireWriter, space: PacketSpace) => void): Uint8Array[] {
    const { path } = this;
    const sent: Uint8Array[] = [];
    for (const space of this.#options.spaces) {
      if (!space.isOpen) continue;
      const least = space.id === INITIAL_SPACE ? MIN_INITIAL_BYTES : 0;
      const datagram = this.#sealAlone(space, least, (out) => write(out, space));
      if (datagram.length > path.roomBytes) break;
      this.#sendAlone(datagram, path);
      sent.push(datagram);
    }
    return sent;
  }

  /** A 1-RTT packet with a frame that is not said again when it is lost, as long as the path lets it be (RFC 9000 §8.2.1). */
  sendProbe(path: Path, write: (out: WireWriter) => void): void {
    const space = this.#options.spaces[APPLICATION_SPACE];
    if (!space.isOpen || space.sent.isFull) return;
    const datagram = this.#sealAlone(space, Math.min(MIN_INITIAL_BYTES, path.roomBytes), write);
    if (datagram.length <= path.roomBytes) this.#sendAlone(datagram, path);
  }

  #sendAlone(datagram: Uint8Array, path: Path): void {
    path.sentBytes += datagram.length;
    path.isMarked = false;
    this.#options.events.send(datagram, path);
  }

  /** A packet that is not waited for, `leastBytes` long. Its memory is the caller's. */
  #sealAlone(space: PacketSpace, leastBytes: number, write: (out: WireWriter) => void): Uint8Array {
    const memory = takePacketMemory(this.#options.ciphers);
    const number = this.#begin(memory, 0, space);
    write(this.#out);
    this.#seal(memory, 0, space, number, leastBytes);
    space.sent.takeSettled();
    const datagram = memory.bytes.slice(0, this.#out.at + TAG_BYTES);
    givePacketMemory(memory);
    return datagram;
  }
}
