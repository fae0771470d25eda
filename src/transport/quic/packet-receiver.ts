/** From datagrams to the frames of authentic packets (RFC 9000 §12.2, RFC 9001 §5). */
import { byteAt } from "#lib/at.ts";
import type { PacketMemory, QuicCiphers } from "#platform/quic.ts";
import { PROTOCOL_VIOLATION, QuicFault } from "./fault.ts";
import { givePacketMemory, takePacketMemory } from "./packet-memories.ts";
import type { ApplicationKeys } from "./protection/application-keys.ts";
import { APPLICATION_SPACE, type PacketSpace } from "./recovery/packet-space.ts";
import { expandPacketNumber } from "./wire/packet-number.ts";
import { HANDSHAKE, INITIAL, MIN_INITIAL_BYTES, ONE_RTT, type PacketHeader } from "./wire/header.ts";
import { hasFixedBit, isShortHeader, readHeader, SHORT_NUMBER_AT } from "./wire/header.ts";
import { RETRY, VERSION_1, VERSION_NEGOTIATION, ZERO_RTT } from "./wire/header.ts";
import { WireReader } from "./wire/reader.ts";

/** Packets that come before their keys. */
const MOST_EARLY = 10;
/** Bits of the first byte that must be zero (RFC 9000 §17.2, §17.3). */
const LONG_RESERVED = 0x0c;
const SHORT_RESERVED = 0x18;

export interface PacketOrigin {
  /** The peer's id, as an Initial packet has it; null: of other packets. */
  readonly source: Uint8Array | null;
  /** Of 0-RTT. */
  readonly isEarly: boolean;
}

export interface PacketHandler {
  /**
   * The frames of a packet that is authentic and new, lent until the call returns. Throws `QuicFault`.
   */
  onPacket(space: PacketSpace, origin: PacketOrigin, number: number, frames: WireReader): void;
  /** An answer to our first packet that is not protected by keys; `packet` is the whole. */
  onRetry(header: PacketHeader, packet: Uint8Array): void;
  onVersions(header: PacketHeader, packet: Uint8Array): void;
  /** No packet of the datagram could be opened, and the last one had a short header. */
  onUnreadable(datagram: Uint8Array): void;
  /** Milliseconds of a probe timeout. */
  readonly probeMs: number;
}

export interface PacketReceiverOptions {
  readonly isServer: boolean;
  readonly ciphers: QuicCiphers;
  readonly spaces: readonly [PacketSpace, PacketSpace, PacketSpace];
  readonly keys: ApplicationKeys;
  readonly handler: PacketHandler;
}

export class PacketReceiver {
  readonly #options: PacketReceiverOptions;
  readonly #headers = new WireReader();
  readonly #frames = new WireReader();
  /** Whole packets; their keys may come. */
  #early: Uint8Array[] = [];
  #isHandshakeDone = false;
  /** How many of the two kinds of keys were there. */
  #keysAtReplay = 0;

  constructor(options: PacketReceiverOptions) {
    this.#options = options;
  }

  /** Throws `QuicFault` where an authentic packet breaks a rule. */
  receive(datagram: Uint8Array, nowMs: number): void {
    if (datagram.length === 0) return;
    const isShort = isShortHeader(byteAt(datagram, 0));
    const opened = isShort ? this.#short(datagram, nowMs) : this.#longs(datagram, nowMs);
    if (!opened && isShort) this.#options.handler.onUnreadable(datagram);
    if (this.#early.length > 0) this.#replay(nowMs);
  }

  /** Packets with a long header, behind which one with a short header may stand. Answers whether one was opened. */
  #longs(datagram: Uint8Array, nowMs: number): boolean {
    const { isServer, handler, spaces } = this.#options;
    const reader = this.#headers.reset(datagram);
    let first: Uint8Array | null = null;
    let opened = false;
    while (reader.left > 0) {
      const header = tryHeader(reader);
      if (header === null) break;
      const { type, version, destination, start, end } = header;
      if (version !== VERSION_1 && type !== VERSION_NEGOTIATION) break;
      first ??= destination;
      if (Buffer.compare(first, destination) !== 0) continue;
      if (isServer && type === INITIAL && datagram.length < MIN_INITIAL_BYTES) break;
      const packet = datagram.subarray(start, end);
      if (type === RETRY) handler.onRetry(header, packet);
      else if (type === VERSION_NEGOTIATION) handler.onVersions(header, packet);
      else if (type === ONE_RTT) opened = this.#short(packet, nowMs) || opened;
      else if (type === INITIAL) opened = this.#long(spaces[0], header, packet, nowMs) || opened;
      else if (type === ZERO_RTT) opened = this.#zeroRtt(header, packet, nowMs) || opened;
      else if (type === HANDSHAKE) opened = this.#long(spaces[1], header, packet, nowMs) || opened;
      reader.reset(datagram, end); // a call from within may have read another one
    }
    return opened;
  }

  /** The peer is the right one: packets of the application are read from now on. */
  onHandshakeDone(): void {
    this.#isHandshakeDone = true;
  }

  /** What waited for keys that have come meanwhile is read. */
  #replay(nowMs: number): void {
    const [, handshake, application] = this.#options.spaces;
    const there = [handshake.opens !== null, application.opens !== null, this.#isHandshakeDone];
    const keys = there.filter((one) => one).length;
    if (keys === this.#keysAtReplay) return;
    this.#keysAtReplay = keys;
    const early = this.#early;
    this.#early = [];
    for (const packet of early) this.receive(packet, nowMs);
  }

  #keepEarly(packet: Uint8Array): false {
    if (this.#early.length < MOST_EARLY) this.#early.push(new Uint8Array(packet));
    return false;
  }

  #long(space: PacketSpace, header: PacketHeader, packet: Uint8Array, nowMs: number): boolean {
    if (space.isDropped) return false;
    if (space.opens === null) return this.#keepEarly(packet);
    const source = header.type === INITIAL ? header.source : null;
    const numberAt = header.numberAt - header.start;
    return this.#open(space, packet, { numberAt, source, isEarly: false }, nowMs);
  }

  /** Of a client. Behind the handshake its keys are gone; what was in it comes again. */
  #zeroRtt(header: PacketHeader, packet: Uint8Array, nowMs: number): boolean {
    const { isServer, keys, spaces } = this.#options;
    const [, , space] = spaces;
    if (!isServer || space.isDropped || keys.opens !== null) return false;
    if (space.opens === null) return this.#keepEarly(packet);
    const numberAt = header.numberAt - header.start;
    return this.#open(space, packet, { numberAt, source: null, isEarly: true }, nowMs);
  }

  #short(packet: Uint8Array, nowMs: number): boolean {
    const [, , space] = this.#options.spaces;
    if (space.isDropped || !hasFixedBit(byteAt(packet, 0))) return false;
    if (space.opens === null || !this.#isHandshakeDone) return this.#keepEarly(packet);
    return this.#open(space, packet, SHORT, nowMs);
  }

  #open(space: PacketSpace, packet: Uint8Array, head: Head, nowMs: number): boolean {
    const memory = takePacketMemory(this.#options.ciphers);
    try {
      if (packet.length > memory.bytes.length) return false;
      memory.bytes.set(packet);
      const { keys } = this.#options;
      const hadNext = keys.hasNext;
      if (this.#openIn(memory, space, packet.length, head, nowMs)) return true;
      if (hadNext || !keys.hasNext) return false;
      // That it could not be opened made the next keys, whichever phase it is of: it may be the first of theirs.
      memory.bytes.set(packet);
      return this.#openIn(memory, space, packet.length, head, nowMs);
    } finally {
      givePacketMemory(memory);
    }
  }

  /** A packet of `size` bytes at the start of the memory. */
  #openIn(memory: PacketMemory, space: PacketSpace, size: number, head: Head, nowMs: number): boolean {
    const { keys, handler } = this.#options;
    const { numberAt, isEarly } = head;
    const isApplication = space.id === APPLICATION_SPACE && !isEarly;
    const masks = isApplication ? keys.opens : space.opens;
    const first = masks === null ? -1 : masks.unmask(memory, size, numberAt);
    if (first < 0) return false;
    const bodyAt = numberAt + (first & 3) + 1;
    const number = packetNumberAt(memory.bytes, numberAt, bodyAt, space.received.largest);
    const phase = (first >> 2) & 1;
    const opens = isApplication ? keys.opensOf(phase, number, nowMs) : space.opens;
    const bytes = opens === null ? -1 : opens.open(memory, size, bodyAt, number);
    if (bytes < 0) {
      if (isApplication && opens !== null) keys.onForged();
      return false;
    }
    if (isApplication) keys.onOpened(phase, number, nowMs, handler.probeMs);
    if ((first & (isApplication ? SHORT_RESERVED : LONG_RESERVED)) !== 0)
      throw new QuicFault(PROTOCOL_VIOLATION, "reserved bits that are not zero");
    if (!space.received.isDuplicate(number))
      handler.onPacket(space, head, number, this.#frames.reset(memory.bytes, bodyAt, bodyAt + bytes));
    return true;
  }
}

/** Where the packet number begins, and what else its header says. */
interface Head extends PacketOrigin {
  readonly numberAt: number;
}

const SHORT: Head = { numberAt: SHORT_NUMBER_AT, source: null, isEarly: false };

function packetNumberAt(bytes: Uint8Array, from: number, to: number, largest: number): number {
  let low = 0;
  for (let at = from; at < to; at++) low = low * 256 + byteAt(bytes, at);
  return expandPacketNumber(low, to - from, largest);
}

function tryHeader(reader: WireReader): PacketHeader | null {
  try {
    return readHeader(reader);
  } catch (error) {
    if (error instanceof QuicFault) return null; // not protected: anybody can have written it
    throw error;
  }
}
