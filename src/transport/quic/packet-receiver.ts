/** From datagrams to the frames of authentic packets (RFC 9000 §12.2, RFC 9001 §5). */
import type { Memory, PacketCipher, QuicCiphers } from "#platform/quic.ts";
import { PROTOCOL_VIOLATION, QuicFault } from "./fault.ts";
import type { ApplicationKeys } from "./protection/application-keys.ts";
import type { PacketSpace } from "./recovery/packet-space.ts";
import { expandPacketNumber } from "./wire/packet-number.ts";
import {
  HANDSHAKE,
  INITIAL,
  MIN_INITIAL_BYTES,
  ONE_RTT,
  type PacketHeader,
  readHeader,
} from "./wire/header.ts";
import { RETRY, VERSION_1, VERSION_NEGOTIATION } from "./wire/header.ts";
import { WireReader } from "./wire/reader.ts";

const SLAB_BYTES = 64 * 1024;
/** Packets that come before their keys. */
const MOST_EARLY = 10;
const TAG_BYTES = 16;

export interface PacketHandler {
  /**
   * The frames of a packet that is authentic and new. Answers whether views of their memory are kept. Throws
   * `QuicFault`.
   */
  onPacket(space: PacketSpace, header: PacketHeader, number: number, frames: WireReader): boolean;
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
  #slab: Memory | null = null;
  #slabAt = 0;
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
    const reader = this.#headers.reset(datagram);
    const { isServer, handler } = this.#options;
    let first: Uint8Array | null = null;
    let opened = false;
    while (reader.left > 0) {
      const header = tryHeader(reader);
      if (header === null) break;
      if (header.version !== VERSION_1 && header.type !== VERSION_NEGOTIATION) break;
      first ??= header.destination;
      if (Buffer.compare(first, header.destination) !== 0) continue;
      if (isServer && header.type === INITIAL && datagram.length < MIN_INITIAL_BYTES) break;
      const packet = datagram.subarray(header.start, header.end);
      if (header.type === RETRY) handler.onRetry(header, packet);
      else if (header.type === VERSION_NEGOTIATION) handler.onVersions(header, packet);
      else opened = this.#packet(header, packet, nowMs) || opened;
      reader.reset(datagram, header.end);
    }
    if (!opened && datagram.length > 0 && ((datagram[0] ?? 0) & 0x80) === 0) handler.onUnreadable(datagram);
    this.#replay(nowMs);
  }

  /** The peer is the right one: packets of the application are read from now on. */
  onHandshakeDone(): void {
    this.#isHandshakeDone = true;
  }

  /** What waited for keys that have come meanwhile is read. */
  #replay(nowMs: number): void {
    const keys = (this.#options.spaces[1].opens === null ? 0 : 1) + (this.#isHandshakeDone ? 1 : 0);
    if (this.#early.length === 0 || keys === this.#keysAtReplay) return;
    this.#keysAtReplay = keys;
    const early = this.#early;
    this.#early = [];
    for (const packet of early) this.receive(packet, nowMs);
  }

  #spaceOf(header: PacketHeader): PacketSpace | null {
    const [initial, handshake, application] = this.#options.spaces;
    if (header.type === INITIAL) return initial;
    if (header.type === HANDSHAKE) return handshake;
    return header.type === ONE_RTT ? application : null;
  }

  #packet(header: PacketHeader, packet: Uint8Array, nowMs: number): boolean {
    const space = this.#spaceOf(header);
    if (space === null || space.isDropped) return false;
    const isApplication = header.type === ONE_RTT;
    if (space.opens === null || (isApplication && !this.#isHandshakeDone)) {
      if (this.#early.length < MOST_EARLY) this.#early.push(new Uint8Array(packet));
      return false;
    }
    const { keys, handler } = this.#options;
    const numberAt = header.numberAt - header.start;
    const masks = isApplication ? keys.opens : space.opens;
    const first = masks?.unmask(packet, numberAt) ?? -1;
    if (masks === null || first < 0) return false;
    const numberBytes = (first & 3) + 1;
    const number = expandPacketNumber(
      masks.numberOf(numberAt, numberBytes),
      numberBytes,
      space.received.largest,
    );
    const phase = (first >> 2) & 1;
    const opens = isApplication ? keys.opensOf(phase, number, nowMs) : space.opens;
    if (opens === null) return false;
    const size = this.#open(opens, packet, numberAt + numberBytes, number);
    if (size < 0) {
      if (isApplication) keys.onForged();
      return false;
    }
    if (isApplication) keys.onOpened(phase, number, nowMs, handler.probeMs);
    if ((first & (isApplication ? 0x18 : 0x0c)) !== 0)
      throw new QuicFault(PROTOCOL_VIOLATION, "reserved bits that are not zero");
    if (space.received.isDuplicate(number)) return true;
    this.#hand(space, header, number, size);
    return true;
  }

  #open(opens: PacketCipher, packet: Uint8Array, headBytes: number, number: number): number {
    if (this.#slab === null || this.#slabAt + packet.length > SLAB_BYTES) {
      this.#slab = this.#options.ciphers.allocate(Math.max(SLAB_BYTES, packet.length));
      this.#slabAt = 0;
    }
    if (packet.length < headBytes + TAG_BYTES) return -1;
    return opens.open(packet, headBytes, number, this.#slab, this.#slabAt);
  }

  #hand(space: PacketSpace, header: PacketHeader, number: number, size: number): void {
    const slab = this.#slab;
    if (slab === null) return;
    const from = this.#slabAt;
    this.#slabAt += size; // a nested call must not write there
    const frames = this.#frames.reset(slab.bytes, from, from + size);
    const isKept = this.#options.handler.onPacket(space, header, number, frames);
    if (!isKept && this.#slab === slab && this.#slabAt === from + size) this.#slabAt = from;
  }
}

function tryHeader(reader: WireReader): PacketHeader | null {
  try {
    return readHeader(reader);
  } catch (error) {
    if (error instanceof QuicFault) return null; // not protected: anybody can have written it
    throw error;
  }
}
