/** One of the three packet number spaces (RFC 9000 §12.3): its keys, its numbers, and its handshake bytes. */
import type { PacketCipher } from "#platform/quic.ts";
import { CryptoStream } from "#transport/quic/streams/crypto-stream.ts";
import { ReceivedPackets } from "./received-packets.ts";
import { SentPackets } from "./sent-packets.ts";

export const INITIAL_SPACE = 0;
export const HANDSHAKE_SPACE = 1;
export const APPLICATION_SPACE = 2;
export type SpaceId = 0 | 1 | 2;

/** What spaces have in common that were dropped: nothing is received in them, and of their handshake bytes none. */
const NOTHING = {
  received: new ReceivedPackets(),
  crypto: new CryptoStream(),
} as const;

export class PacketSpace {
  readonly id: SpaceId;
  readonly sent = new SentPackets();
  received = new ReceivedPackets();
  crypto = new CryptoStream();
  /** Null: there are none yet, or no more. */
  seals: PacketCipher | null = null;
  opens: PacketCipher | null = null;
  isDropped = false;
  largestAcked = -1;
  /** When the last packet that asks for an acknowledgement went. */
  lastElicitingAtMs = 0;
  /** When the first packet in flight will count as lost; Infinity: none will. */
  lossAtMs = Infinity;
  /** Packets that go whatever the window says, because nothing was heard. */
  probes = 0;
  /** Packets in flight that ask for an acknowledgement. */
  eliciting = 0;

  constructor(id: SpaceId) {
    this.id = id;
  }

  get isOpen(): boolean {
    return !this.isDropped && this.seals !== null;
  }

  /** Gives the keys up. Answers with the bytes that were in flight and do not count any more. */
  drop(): number {
    if (this.isDropped) return 0;
    this.isDropped = true;
    this.seals?.[Symbol.dispose]();
    this.opens?.[Symbol.dispose]();
    this.seals = this.opens = null;
    this.lossAtMs = Infinity;
    this.probes = this.eliciting = 0;
    this.received = NOTHING.received;
    this.crypto = NOTHING.crypto;
    return this.sent.release();
  }
}
